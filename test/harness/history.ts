import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HistoryReader } from "./history-reader.js";
import type { HistoryEntry, HistoryRecord } from "./history-record.js";
import { type HistoryRecorder, openHistoryRecorder } from "./history-recorder.js";

/** A test's history: the folder its processes write to, and the test's own recorder. */
export interface History extends Disposable {
  /** Given to child processes. */
  readonly folder: string;
  /** Writes as the test itself. */
  record(entry: HistoryEntry): void;
  /** `base`, or `base-2`, `base-3`… when it was given out before: every process start writes under its own name. */
  nameFor(base: string): string;
  /** All that every process has written so far, merged. */
  read(): HistoryRecord[];
}

/** Makes a temporary folder that goes with the history; set `LANEKEEPER_KEEP_HISTORY` to keep it for a look. */
export function startHistory(): History {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-history-"));
  const own: HistoryRecorder = openHistoryRecorder(folder, "test");
  const reader = new HistoryReader(folder);
  const given = new Map<string, number>();
  return {
    folder,
    nameFor(base) {
      const count = (given.get(base) ?? 0) + 1;
      given.set(base, count);
      return count === 1 ? base : `${base}-${count}`;
    },
    record: (entry) => own.record(entry),
    read: () => reader.read(),
    [Symbol.dispose]() {
      own[Symbol.dispose]();
      if (process.env["LANEKEEPER_KEEP_HISTORY"] === undefined)
        rmSync(folder, { recursive: true, force: true });
      else console.log(`history kept in ${folder}`);
    },
  };
}
