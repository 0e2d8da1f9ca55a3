import type { HistoryRecord } from "../history-record.js";
import type { Fault } from "./fault.js";
import { type HandlerRun, runsByKey } from "./handler-runs.js";

/** O1: for one group, the first handler starts of a key follow stream order, over all processes. */
export function checkOrder(history: readonly HistoryRecord[]): Fault[] {
  return runsByKey(history).flatMap(ordersOfKey);
}

function ordersOfKey(runs: readonly HandlerRun[]): Fault[] {
  const faults: Fault[] = [];
  const started = new Set<number>();
  let latest: HandlerRun | undefined;
  for (const run of runs) {
    if (started.has(run.seq)) continue; // Not its first start: a retry or a redelivery.
    started.add(run.seq);
    if (latest === undefined || run.seq > latest.seq) {
      latest = run;
      continue;
    }
    faults.push({
      invariant: "O1",
      key: run.key,
      seqs: [run.seq, latest.seq],
      processes: [run.process, latest.process],
      atMs: run.startMs,
      text:
        `group ${run.group}, key ${JSON.stringify(run.key)}: seq ${run.seq} first started in ${run.process} ` +
        `at ${run.startMs.toFixed(3)}, after seq ${latest.seq} in ${latest.process} ` +
        `at ${latest.startMs.toFixed(3)}`,
    });
  }
  return faults;
}
