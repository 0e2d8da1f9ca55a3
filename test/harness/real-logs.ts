import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** One line of a log: the `n`th event of its case. */
export interface LogEvent {
  readonly case: string;
  readonly n: number;
  readonly activity: string;
}

export interface RealLog {
  readonly file: string;
  readonly events: readonly LogEvent[];
}

/** Where real event logs are looked for: `LANEKEEPER_LOGS`, otherwise beside the repository. */
const realLogsFolder: string =
  process.env["LANEKEEPER_LOGS"] ?? fileURLToPath(new URL("../../../shared/data", import.meta.url));

/** Why a test that needs the log is skipped, or `false` where it is there; for `test.skipIf` and its name. */
export function missingRealLog(name: string): string | false {
  const file = join(realLogsFolder, name);
  return existsSync(file) ? false : `needs ${file}; set LANEKEEPER_LOGS to the folder that has it`;
}

/** @throws Error on a line that is no event with `case`, `n` and `activity`. */
export function readRealLog(name: string): RealLog {
  const file = join(realLogsFolder, name);
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return { file, events: lines.map((line, index) => parse(line, `${file}:${index + 1}`)) };
}

function parse(line: string, at: string): LogEvent {
  const event = JSON.parse(line) as Partial<LogEvent>;
  if (typeof event.case !== "string" || typeof event.n !== "number" || typeof event.activity !== "string") {
    throw new Error(`${at} is no event with case, n and activity`);
  }
  return { case: event.case, n: event.n, activity: event.activity };
}
