import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readHistory } from "./history-reader.js";
import type { HistoryEntry, HistoryRecord } from "./history-record.js";
import { type HistoryRecorder, openHistoryRecorder } from "./history-recorder.js";

/** A test's history: the folder its processes write to, and the test's own recorder. */
export interface History extends Disposable {
  /** Given to child processes. */
  readonly folder: string;
  /** Writes as the test itself. */
  record(entry: HistoryEntry): void;
  /** All that every process has written so far, merged. */
  read(): HistoryRecord[];
}

/** Makes a temporary folder that goes with the history; set `LANEKEEPER_KEEP_HISTORY` to keep it for a look. */
export function startHistory(): History {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-history-"));
  const own: HistoryRecorder = openHistoryRecorder(folder, "test");
  return {
    folder,
    record: (entry) => own.record(entry),
    read: () => readHistory(folder),
    [Symbol.dispose]() {
      own[Symbol.dispose]();
      if (process.env["LANEKEEPER_KEEP_HISTORY"] === undefined)
        rmSync(folder, { recursive: true, force: true });
      else console.log(`history kept in ${folder}`);
    },
  };
}
