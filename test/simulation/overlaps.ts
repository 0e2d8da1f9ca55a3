import { checkOneAtATime } from "../harness/checkers/check-one-at-a-time.js";
import type { Fault } from "../harness/checkers/fault.js";
import { handlerRuns } from "../harness/checkers/handler-runs.js";
import type { HistoryRecord } from "../harness/history-record.js";
import type { Scenario } from "./scenario.js";

/**
 * O2, less what the design states as the hole that physics leaves: a run that its process had in hand while it was frozen
 * about as long as its hold lasts, and a run whose handler goes on though its signal was aborted.
 */
export function overlapsOf(
  history: readonly HistoryRecord[],
  { assignment, leaseMs, ackWaitMs }: Scenario,
  aborts: ReadonlyMap<string, number>,
): { faults: readonly Fault[]; stated: number } {
  const holdMs = assignment === "owned" ? leaseMs : ackWaitMs;
  const { faults: all, frozenOverlaps } = checkOneAtATime(history, { ackWaitMs: holdMs * 0.6 });
  if (all.length === 0) return { faults: all, stated: frozenOverlaps.length };
  const runs = handlerRuns(history);
  const faults = all.filter(({ seqs, processes, atMs = 0 }) => {
    const [first] = processes;
    // The earlier run of the pair went on though it had been told to stop before the later one began.
    return !runs.some(
      (run) =>
        run.process === first &&
        seqs.includes(run.seq) &&
        run.startMs <= atMs &&
        run.endMs > atMs &&
        (aborts.get(`${run.process} ${run.run}`) ?? Number.POSITIVE_INFINITY) <= atMs,
    );
  });
  return { faults, stated: frozenOverlaps.length + all.length - faults.length };
}
