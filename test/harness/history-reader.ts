import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HistoryRecord } from "./history-record.js";

/**
 * Every process's records in one list, in order of time; those of one process stay in the order it wrote them.
 *
 * A last line without its newline is left out: its process was killed while it wrote, or is still writing.
 *
 * @throws Error on any other line that is no record, and on a counter that skips: a history with holes proves nothing.
 */
export function readHistory(folder: string): HistoryRecord[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(".ndjson"));
  const records = files.flatMap((name) => readFile(join(folder, name)));
  return records.sort((a, b) => a.atMs - b.atMs || compare(a.process, b.process) || a.n - b.n);
}

function readFile(path: string): HistoryRecord[] {
  const lines = readFileSync(path, "utf8").split("\n");
  lines.pop(); // Empty after a newline; otherwise the torn last line.
  return lines.map((line, index) => {
    const record = parse(line);
    if (record === undefined) throw new Error(`${path}:${index + 1} is no record: ${line.slice(0, 200)}`);
    if (record.n !== index + 1) throw new Error(`${path}:${index + 1} has counter ${record.n}`);
    return record;
  });
}

function parse(line: string): HistoryRecord | undefined {
  try {
    const record = JSON.parse(line) as HistoryRecord;
    return typeof record.kind === "string" && typeof record.atMs === "number" ? record : undefined;
  } catch {
    return undefined;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
