import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { HistoryEntry } from "./history-record.js";

/** Writes one process's part of the history. */
export interface HistoryRecorder extends Disposable {
  /** The name under which this process writes. */
  readonly process: string;
  /**
   * Writes the fact before it returns: once the kernel has the bytes, no SIGKILL of this process takes them back.
   * After it was disposed of it writes nothing.
   */
  record(entry: HistoryEntry): void;
}

/** @param process one name per process start; names the file too, so letters, digits, `-`, `_` and `.` only. */
export function openHistoryRecorder(folder: string, process: string): HistoryRecorder {
  if (!/^[\w.-]+$/.test(process)) throw new Error(`"${process}" cannot name a history file`);
  // Exclusive: two processes under one name would mix up their counters and runs.
  const file = openSync(join(folder, `${process}.ndjson`), "ax");
  let open = true;
  let n = 0;
  return {
    process,
    record(entry) {
      if (!open) return;
      n += 1;
      const stamp = { process, n, atMs: machineMs(), wallMs: performance.timeOrigin + performance.now() };
      writeSync(file, `${JSON.stringify({ ...stamp, ...entry })}\n`);
    },
    [Symbol.dispose]() {
      if (!open) return;
      open = false;
      closeSync(file);
    },
  };
}

/** CLOCK_MONOTONIC: one clock for every process of the machine, untouched by clock corrections. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
