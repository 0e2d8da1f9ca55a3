import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The oldest server that Lanekeeper works with: stream metadata and subject transforms came with it. */
export const MINIMUM_VERSION = "2.10";
const ANSWER_MS = 10_000;
const run = promisify(execFile);

/**
 * Asks a nats-server for its version.
 *
 * @returns for example `"2.10.27"`.
 * @throws Error that says why there is no answer: not there, not executable, not a nats-server, or silent for 10 s.
 */
export async function readServerVersion(binary: string): Promise<string> {
  const { stdout, stderr } = await run(binary, ["--version"], { timeout: ANSWER_MS, killSignal: "SIGKILL" });
  const version = /nats-server:? v?(\d+\.\d+\.\d+[^\s]*)/.exec(`${stdout}\n${stderr}`)?.[1];
  if (version === undefined)
    throw new Error(`its --version names no version: ${JSON.stringify(stdout.slice(0, 200))}`);
  return version;
}

/** `"2.15"` of `"2.15.1"`. */
export function lineOf(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

/** Whether the version is 2.10 or later. */
export function isSupported(version: string): boolean {
  return compareVersions(version, MINIMUM_VERSION) >= 0;
}

/** Whether `version` is what was asked for: `"2.10"` stands for every 2.10.x, a full version for itself. */
export function matchesVersion(version: string, wanted: string): boolean {
  const asked = wanted.split(".");
  const has = version.split(".");
  return asked.every((part, index) => part === has[index]);
}

/** Negative, zero or positive, by the numbers only; missing numbers count as 0. */
export function compareVersions(a: string, b: string): number {
  const left = numbersOf(a);
  const right = numbersOf(b);
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function numbersOf(version: string): number[] {
  return version.split(".").map((part) => Number.parseInt(part, 10) || 0);
}
