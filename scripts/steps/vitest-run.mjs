import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { root, runTool } from "./run.mjs";

/** How much is kept of what a failed test says: what was expected, not the whole of a long trace. */
const FAULT_LENGTH = 600;

/**
 * Runs vitest and counts.
 *
 * @param {readonly string[]} args vitest's own: files or parts of their names, and options.
 * @param {Record<string, string>} env
 * @param {number} timeoutMs after which it is stopped, which counts as one failure
 * @returns {Promise<{ passed: number, failed: number, skipped: number, faults: string[] }>} `failed` is at least 1
 * whenever vitest itself is not content, also when no single test failed; `faults` names what failed.
 */
export async function runVitest(args, env, timeoutMs) {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-report-"));
  const report = join(folder, "report.json");
  try {
    const options = ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const code = await runTool("vitest/vitest.mjs", [...options, ...args], { env, timeoutMs });
    return countTests(readReport(report), code);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {{ numPassedTests: number, numFailedTests: number, numPendingTests: number, numTodoTests: number,
 *   testResults: { name?: string, status: string, message?: string,
 *     assertionResults: { status: string, fullName?: string, failureMessages?: string[] }[] }[] } | undefined} report
 * @param {number} code vitest's exit code
 */
export function countTests(report, code) {
  if (report === undefined) return { passed: 0, failed: 1, skipped: 0, faults: ["vitest left no report"] };
  const faults = report.testResults.flatMap(faultsOf);
  // What is outside of tests and files, as an unhandled rejection, is in vitest's exit code only.
  if (faults.length === 0 && code !== 0)
    faults.push("a fault outside of the tests; vitest's output says which");
  return {
    passed: report.numPassedTests,
    failed: faults.length,
    skipped: report.numPendingTests + report.numTodoTests,
    faults,
  };
}

/** The failed tests of one file; a file that cannot even be loaded has none, and is a fault of its own. */
function faultsOf({ name = "", status, message = "", assertionResults }) {
  const file = name === "" ? "" : relative(fileURLToPath(root), name);
  const failed = assertionResults.filter((test) => test.status === "failed");
  if (failed.length === 0) return status === "failed" ? [faultText(file, "cannot be run", message)] : [];
  return failed.map(({ fullName = "", failureMessages = [] }) =>
    faultText(file, fullName, failureMessages[0]),
  );
}

function faultText(file, what, message = "") {
  const ours = message.split("\n").filter((line) => !line.includes("/node_modules/"));
  return `${file}: ${what}\n${ours.join("\n").slice(0, FAULT_LENGTH)}`.trimEnd();
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined; // vitest ended before it wrote one; its output says why.
  }
}
