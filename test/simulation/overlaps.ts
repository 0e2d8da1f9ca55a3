import { checkOneAtATime } from "../harness/checkers/check-one-at-a-time.js";
import type { Fault } from "../harness/checkers/fault.js";
import { handlerRuns } from "../harness/checkers/handler-runs.js";
import { outOfTouch } from "../harness/checkers/out-of-touch.js";
import type { HistoryRecord } from "../harness/history-record.js";

/**
 * O2, less what the design states as the hole that physics leaves: a run whose process was frozen when the other one began,
 * and a run whose handler goes on though its signal was aborted before that.
 */
export function overlapsOf(
  history: readonly HistoryRecord[],
  aborts: ReadonlyMap<string, number>,
): { faults: readonly Fault[]; stated: number } {
  const { faults: all } = checkOneAtATime(history);
  if (all.length === 0) return { faults: all, stated: 0 };
  const runs = handlerRuns(history);
  const frozen = outOfTouch(history);
  const faults = all.filter(({ seqs, processes, atMs = 0 }) => {
    const [first] = processes;
    const asleep = frozen.some(
      ({ process, fromMs, untilMs }) => process === first && fromMs <= atMs && atMs <= untilMs,
    );
    if (asleep) return false;
    return !runs.some(
      (run) =>
        run.process === first &&
        seqs.includes(run.seq) &&
        run.startMs <= atMs &&
        run.endMs > atMs &&
        (aborts.get(`${run.process} ${run.run}`) ?? Number.POSITIVE_INFINITY) <= atMs,
    );
  });
  return { faults, stated: all.length - faults.length };
}
