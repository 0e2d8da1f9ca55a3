import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { checkNodeVersion } from "./node-version.mjs";
import { root, run } from "./run.mjs";
import { Summary } from "./summary.mjs";
import { countTests } from "./vitest-run.mjs";

const report = (numbers: object, testResults: object[] = []) => ({
  numPassedTests: 3,
  numFailedTests: 0,
  numPendingTests: 1,
  numTodoTests: 0,
  testResults,
  ...numbers,
});

test("tests are counted as vitest reports them, and those that failed are named with what they said", () => {
  expect(countTests(report({}), 0)).toEqual({ passed: 3, failed: 0, skipped: 1, faults: [] });
  const failing = {
    name: join(fileURLToPath(root), "test", "some.test.ts"),
    status: "failed",
    assertionResults: [
      { status: "passed", fullName: "holds" },
      {
        status: "failed",
        fullName: "O1: in order",
        failureMessages: ["expected 2 to be 1\n    at line\n    at /node_modules/x"],
      },
      { status: "failed", fullName: "ends", failureMessages: ["x".repeat(5_000)] },
    ],
  };
  const counted = countTests(report({ numFailedTests: 2 }, [failing]), 1);
  expect(counted).toMatchObject({ passed: 3, failed: 2, skipped: 1 });
  expect(counted.faults[0]).toBe("test/some.test.ts: O1: in order\nexpected 2 to be 1\n    at line");
  expect(counted.faults[1]).toMatch(/^test\/some.test.ts: ends\nx{600}$/);
});

test("a file that cannot be loaded, a fault outside the tests and a missing report count as failed", () => {
  const broken = { status: "failed", message: "no such module", assertionResults: [] };
  expect(countTests(report({}, [broken]), 1)).toMatchObject({
    passed: 3,
    failed: 1,
    faults: [": cannot be run\nno such module"],
  });
  expect(countTests(report({}), 1)).toMatchObject({ passed: 3, failed: 1 });
  expect(countTests(undefined, 0)).toMatchObject({ passed: 0, failed: 1, skipped: 0 });
});

test("Node.js before 20.19 is refused with its version", () => {
  expect(() => checkNodeVersion("20.18.3")).toThrow(/needs Node.js 20.19 or later, and this is 20.18.3/);
  expect(() => checkNodeVersion("18.20.0")).toThrow(/18.20.0/);
  for (const version of ["20.19.0", "22.0.0", "26.1.0"])
    expect(() => checkNodeVersion(version)).not.toThrow();
});

test("a program's exit code is told; one that hangs is ended, one that is missing is named", async () => {
  const node = (code: string, timeoutMs = 30_000) => run(process.execPath, ["-e", code], { timeoutMs });
  const said = vi.spyOn(console, "error").mockImplementation(() => {});
  try {
    expect(await node("process.exit(7)")).toBe(7);
    expect(await node("setInterval(() => {}, 1000)", 300)).toBe(124);
    expect(await run("no-such-program", [], { timeoutMs: 30_000 })).toBe(127);
    expect(said.mock.calls.flat().join("\n")).toMatch(
      /not done after 0.3 s; ended\nno-such-program cannot be run/,
    );
  } finally {
    said.mockRestore();
  }
});

test("the summary's last line is the sum of all steps, a failed check counting as one", async () => {
  const said = vi.spyOn(console, "log").mockImplementation(() => {});
  try {
    const summary = new Summary();
    await summary.step("check", async () => 0);
    await summary.step("broken check", async () => 2);
    await summary.step("tests", async () => ({
      passed: 5,
      failed: 1,
      skipped: 2,
      faults: ["a.test.ts: O1"],
    }));
    await summary.step("more tests", async () => ({ passed: 4, failed: 0, skipped: 0 }));
    summary.print("/dev/null");
    expect(summary.failed).toBe(2);
    const lines = said.mock.calls.flat().map(String);
    expect(lines.at(-1)).toBe("tests: 9 passed, 2 failed");
    expect(lines).toContain("\nFAILED a.test.ts: O1");
    expect(lines.findLast((line) => line.includes("broken check"))).toMatch(/^FAILED/);
    expect(lines.find((line) => line.endsWith("5 passed, 1 failed, 2 skipped"))).toMatch(/^FAILED/);
  } finally {
    said.mockRestore();
  }
});
