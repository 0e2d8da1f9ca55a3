import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";

const DEMO = fileURLToPath(new URL("../packages/examples/dist/demo/main.js", import.meta.url));
/** Only a fault takes that long, on however busy a machine. */
const DEADLINE_MS = 230_000;
vi.setConfig({ testTimeout: 240_000 });
/** On a busy machine a mode may take long: these tests are about what is right, not how fast. */
const NO_CUT = ["--max-seconds", "1000"];
/** Three keys with many events each: events in flight side by side are bound to share keys. */
const INPUT = Array.from({ length: 60 }, (_, index) => ({
  customer: { id: `c ${index % 3}` },
  n: Math.floor(index / 3) + 1,
  what: index % 2 === 0 ? "moved" : "paid",
}));
const LINES = INPUT.map((record) => JSON.stringify(record));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lanekeeper-demo-test-"));
});
afterEach(() => {
  // The demo's own folders are made in here as well: none may be left, however it ended.
  const left = readdirSync(folder).filter((name) => name.startsWith("lanekeeper-"));
  rmSync(folder, { recursive: true, force: true });
  expect(left).toEqual([]);
});

describe("O1 to O4 side by side with what plain consumers do", () => {
  test("generated customers: all in order but in the unordered mode, and nothing is missing", async () => {
    // Handlers that wait 20 ms or more, 64 at once: an event's successor is bound to begin during the wait.
    const { code, stdout } = await demo(["--events", "160", "--wait", "20-30", "--workers", "2", ...NO_CUT]);
    expect(code).toBe(0);
    const rows = tableOf(stdout);
    expect(Object.keys(rows)).toEqual(["one at a time", "unordered", "Lanekeeper"]);
    expect(rows["one at a time"]).toMatchObject({ handled: 160, broken: 0, faults: 0, duplicates: 0 });
    // A worker that stands still for most of its lease is fenced, and its events are handled again (O4).
    expect(rows["Lanekeeper"]).toMatchObject({ handled: 160, broken: 0, faults: 0 });
    expect(rows["unordered"]?.handled).toBe(160);
    expect(rows["unordered"]?.faults).toBeGreaterThan(0);
    expect(stdout).toMatch(/Lanekeeper: [\d.]+ times as fast, and every key's events kept their order/);
  });

  test("without order, events break the customers' rules, and the table counts them", async () => {
    // Waits that differ by up to 400 ms: neighbours of a key are bound to end the other way round.
    const { code, stdout } = await demo([
      ...["--events", "300", "--modes", "unordered", "--wait", "0-400", "--workers", "2", ...NO_CUT],
    ]);
    expect(code).toBe(0);
    expect(tableOf(stdout)["unordered"]?.broken).toBeGreaterThan(0);
    expect(stdout).toMatch(
      /\d+ events broke a rule or came too late to be applied, such as:\n {4}customer-\d+: /,
    );
  });

  test("a file with nested keys, an order field and types", async () => {
    const file = write("events.ndjson", `${LINES.join("\n")}\n`);
    const { code, stdout } = await demo([
      ...["--input", file, "--key", "customer.id", "--order", "n", "--type", "what"],
      ...["--wait", "20-30", "--workers", "2", ...NO_CUT],
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('60 events of 3 keys; in the input "n" rises within every key');
    const rows = tableOf(stdout);
    expect(rows["one at a time"]).toMatchObject({ handled: 60, broken: 0, faults: 0 });
    expect(rows["Lanekeeper"]).toMatchObject({ handled: 60, broken: 0, faults: 0 });
    expect(rows["unordered"]?.faults).toBeGreaterThan(0);
  });
});

describe("input", () => {
  test("gzip is found by its first bytes, whatever the file is called, also in several members", async () => {
    const halves = [LINES.slice(0, 30), LINES.slice(30)].map((lines) => gzipSync(`${lines.join("\n")}\n`));
    const file = write("events.txt", Buffer.concat(halves));
    const { code, stdout } = await lanekeeperOnly(["--input", file, "--key", "customer.id", "--order", "n"]);
    expect(code).toBe(0);
    expect(tableOf(stdout)["Lanekeeper"]).toMatchObject({ handled: 60, broken: 0, faults: 0 });
  });

  test("standard input, with CRLF, blank lines, whole numbers as keys and no line feed at the end", async () => {
    const text = '{"id":7}\r\n\r\n{"id":"7"}\r\n  \n{"id":8}';
    const { code, stdout } = await lanekeeperOnly(["--input", "-", "--key", "id"], text);
    expect(code).toBe(0);
    expect(stdout).toContain("3 events of 2 keys");
    expect(tableOf(stdout)["Lanekeeper"]).toMatchObject({ handled: 3, faults: 0, broken: "no rule" });
  });

  test("standard input may be gzip, and --events reads no further than that", async () => {
    const input = gzipSync(`${LINES.slice(0, 5).join("\n")}\nnot JSON\n`);
    const { code, stdout } = await lanekeeperOnly(
      ["--input", "-", "--key", "customer.id", "--events", "5"],
      input,
    );
    expect(code).toBe(0);
    expect(tableOf(stdout)["Lanekeeper"]).toMatchObject({ handled: 5 });
  });

  test("an order field that goes back in the input itself is reported with its line, and counted", async () => {
    const file = write("back.ndjson", '{"id":"a","n":2}\n{"id":"a","n":1}\n{"id":"a","n":3}\n');
    const { code, stdout } = await lanekeeperOnly(["--input", file, "--key", "id", "--order", "n"]);
    expect(code).toBe(0);
    expect(stdout).toContain('line 2: "a" has 1 after 2');
    expect(tableOf(stdout)["Lanekeeper"]).toMatchObject({ handled: 3, faults: 0, broken: 1 });
  });

  test.each([
    ["a bad line", `${LINES.join("\n")}\n{"customer":`, /bad, line 61: it is not JSON/],
    ["nothing at all", "", /the input has no events/],
    ["damaged gzip", gzipSync(LINES.join("\n")).subarray(0, 40), /cannot be unpacked/],
  ])("%s: exit code 2 with the reason, and no table", async (_, content, message) => {
    const { code, stdout, stderr } = await demo(["--input", write("bad", content), "--key", "customer.id"]);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
    expect(stdout).not.toContain("order faults");
  });

  test.each([
    [["--input", "/no/such/file", "--key", "id"], /cannot open \/no\/such\/file/],
    [["--input", tmpdir(), "--key", "id"], /is a folder/],
    [["--input", "-"], /--input also needs --key/],
    [["--workers", "0"], /from 1 to 32/],
  ])("%j: exit code 2 and a message", async (args, message) => {
    const { code, stdout, stderr } = await demo(args);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
    expect(stdout).toBe("");
  });
});

test("--help: exit code 0", async () => {
  const { code, stdout } = await demo(["--help"]);
  expect(code).toBe(0);
  expect(stdout).toContain("--input <file>");
});

test("a mode whose time is up is stopped, and the table says what it handled", async () => {
  const { code, stdout } = await demo([
    ...["--events", "400", "--wait", "100-100", "--modes", "one-at-a-time", "--max-seconds", "1"],
  ]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/│ one at a time │ \d+ of 400 │/);
  expect(stdout).toContain("(time is up)");
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)(
  "%s while workers work: exit code %i, and neither processes nor files are left",
  async (signal, expected) => {
    const { code, stdout } = await demo(
      ["--wait", "1000-1000", "--modes", "one-at-a-time"],
      undefined,
      (output, child) => {
        if (output.includes("one at a time")) child.kill(signal);
      },
    );
    expect(code).toBe(expected);
    expect(stdout).not.toContain("events/s");
  },
);

test("SIGINT while standard input is waited for: exit code 130", async () => {
  const { code } = await demo(["--input", "-", "--key", "id"], "open", (output, child) => {
    if (output.includes("reading")) child.kill("SIGINT");
  });
  expect(code).toBe(130);
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function lanekeeperOnly(args: string[], input?: string | Buffer): Promise<Ended> {
  return demo([...args, "--modes", "lanekeeper", "--workers", "2", ...NO_CUT], input);
}

/**
 * Runs the demo in a pipe and checks what holds of every run: no control characters, no process left.
 *
 * @param input "open": standard input stays open and empty
 */
async function demo(
  args: string[],
  input?: string | Buffer,
  watch: (output: string, child: ReturnType<typeof spawn>) => void = () => {},
): Promise<Ended> {
  const child = spawn(process.execPath, [DEMO, ...args], { env: { ...process.env, TMPDIR: folder } });
  child.stdin.on("error", () => {}); // The demo need not read all of it.
  if (input !== "open") child.stdin.end(input ?? "");
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    watch(stdout, child);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`the demo did not end\n${stdout}\n${stderr}`));
    }, DEADLINE_MS);
    child.on("close", (exitCode) => {
      clearTimeout(timer);
      resolve(exitCode);
    });
  });
  if (code === 1) console.error(stdout, stderr);
  // Servers and workers have the folder in their arguments; one that was killed is listed until it has ended.
  await awaitCondition(() => processesOf(folder).length === 0, {
    what: () => `these to end:\n${processesOf(folder).join("\n")}`,
  });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the point
  expect(`${stdout}${stderr}`).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
  return { code, stdout, stderr };
}

function processesOf(path: string): string[] {
  const all = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" });
  return all.split("\n").filter((line) => line.includes(path));
}

interface Row {
  readonly handled: number;
  readonly broken: number | string;
  readonly faults: number;
  readonly duplicates: number;
}

/** The table's rows by mode. */
function tableOf(output: string): Record<string, Row> {
  const rows: Record<string, Row> = {};
  for (const line of output.split("\n").filter((text) => text.startsWith("│"))) {
    const [mode = "", handled = "", , broken = "", faults = "", duplicates = ""] = line
      .split("│")
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (mode === "mode") continue;
    const number = (cell: string): number => Number(cell.replaceAll(",", ""));
    rows[mode] = {
      handled: number(handled),
      broken: broken === "no rule" ? broken : number(broken),
      faults: number(faults),
      duplicates: number(duplicates),
    };
  }
  return rows;
}

function write(name: string, content: string | Buffer): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}
