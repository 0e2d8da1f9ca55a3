import type { HistoryRecord } from "../history-record.js";
import { handlerRuns } from "./handler-runs.js";

/** How an event was first settled in a group. */
export interface Settlement {
  readonly atMs: number;
  readonly process: string;
  readonly how: "handled" | "dropped" | "parked";
}

/** By group, then by stream sequence: when each event was first handled to its end, dropped or parked. */
export function settlementsByGroup(history: readonly HistoryRecord[]): Map<string, Map<number, Settlement>> {
  const groups = new Map<string, Map<number, Settlement>>();
  const settle = (group: string, seq: number, settlement: Settlement): void => {
    const settled = groups.get(group) ?? new Map<number, Settlement>();
    groups.set(group, settled);
    const known = settled.get(seq);
    if (known === undefined || settlement.atMs < known.atMs) settled.set(seq, settlement);
  };
  for (const run of handlerRuns(history)) {
    if (!groups.has(run.group)) groups.set(run.group, new Map());
    if (run.outcome === "handled") {
      settle(run.group, run.seq, { atMs: run.endMs, process: run.process, how: "handled" });
    }
  }
  for (const record of history) {
    if (record.kind !== "notification" || record.group === undefined || record.seq === undefined) continue;
    if (record.type !== "dropped" && record.type !== "parked") continue;
    settle(record.group, record.seq, { atMs: record.atMs, process: record.process, how: record.type });
  }
  return groups;
}
