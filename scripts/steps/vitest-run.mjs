import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runTool } from "./run.mjs";

/**
 * Runs vitest and counts.
 *
 * @param {readonly string[]} args vitest's own: files or parts of their names, and options.
 * @param {Record<string, string>} env
 * @param {number} timeoutMs after which it is stopped, which counts as one failure
 * @returns {Promise<{ passed: number, failed: number, skipped: number }>} `failed` is at least 1 whenever vitest
 * itself is not content, also when no single test failed.
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
 *   testResults: { status: string, assertionResults: { status: string }[] }[] } | undefined} report
 * @param {number} code vitest's exit code
 */
export function countTests(report, code) {
  if (report === undefined) return { passed: 0, failed: 1, skipped: 0 };
  // A file that cannot even be loaded has no failed test in it.
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
  ).length;
  const failed = report.numFailedTests + brokenFiles;
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && code !== 0 ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined; // vitest ended before it wrote one; its output says why.
  }
}
