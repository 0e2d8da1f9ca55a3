import { OrderCheck } from "./order-check.js";
import type { RunRecord } from "./run-records.js";

/** The handler runs of one process. */
export interface ProcessRecords {
  readonly records: readonly RunRecord[];
  /** When the process was killed or frozen for good: runs that had not ended by then do not go on. */
  readonly endedAt?: number;
}

/** Puts the runs of several processes of one machine in the order of time and checks them as one group. */
export function checkRecords(processes: readonly ProcessRecords[], keys: number): OrderCheck {
  const order = new OrderCheck(keys);
  const all = processes.flatMap(({ records, endedAt }) =>
    endedAt === undefined ? records : [...records, ...openRuns(records, endedAt)],
  );
  // Of what happened in the same instant the end comes first.
  all.sort((a, b) => a.at - b.at || (a.type === b.type ? 0 : a.type === "end" ? -1 : 1));
  for (const { type, key, n } of all) {
    if (type === "start") order.start(key, n);
    else order.end(key);
  }
  return order;
}

/** The ends of runs that have not ended, at this time. */
export function openRuns(records: readonly RunRecord[], at: number): RunRecord[] {
  const open = new Map<number, RunRecord>();
  for (const record of records) {
    if (record.type === "start") open.set(record.key, { ...record, type: "end", at });
    else open.delete(record.key);
  }
  return [...open.values()];
}
