import type { HistoryRecord, StoredEvent } from "../history-record.js";
import type { Fault } from "./fault.js";
import { handlerRuns } from "./handler-runs.js";
import { settlementsByGroup } from "./settlements.js";

export interface CompleteResult {
  readonly faults: readonly Fault[];
  /** Successful runs beyond an event's first: allowed by "at least once", worth knowing. */
  readonly repeats: number;
}

/**
 * O4: every stored event is handled to its end, dropped or parked, in every one of the groups. A handler that ran
 * an event that is not stored is a fault too: nobody may make up events.
 *
 * @param groups whose history it is; a group that never ran anything is not in the history and must be named.
 */
export function checkComplete(
  history: readonly HistoryRecord[],
  stored: readonly StoredEvent[],
  groups: readonly string[],
): CompleteResult {
  const settlements = settlementsByGroup(history);
  const keyOf = new Map(stored.map(({ seq, key }) => [seq, key]));
  const faults: Fault[] = [];
  for (const group of groups) {
    const settled = settlements.get(group);
    for (const { seq, key } of stored) {
      if (settled?.has(seq)) continue;
      const text = `group ${group}, key ${JSON.stringify(key)}: seq ${seq} is stored and was never handled, dropped or parked`;
      faults.push({ invariant: "O4", key, seqs: [seq], processes: [], text });
    }
  }
  let repeats = 0;
  const handled = new Set<string>();
  for (const run of handlerRuns(history)) {
    if (keyOf.get(run.seq) !== run.key) {
      const text = `group ${run.group}, key ${JSON.stringify(run.key)}: ${run.process} ran seq ${run.seq}, which is not stored under that key`;
      const { key, process, startMs } = run;
      faults.push({ invariant: "O4", key, seqs: [run.seq], processes: [process], atMs: startMs, text });
    }
    if (run.outcome !== "handled") continue;
    const name = `${run.group} ${run.seq}`;
    if (handled.has(name)) repeats += 1;
    handled.add(name);
  }
  return { faults, repeats };
}
