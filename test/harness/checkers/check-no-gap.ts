import type { HistoryRecord, StoredEvent } from "../history-record.js";
import type { Fault } from "./fault.js";
import { type HandlerRun, runsByKey } from "./handler-runs.js";
import { type Settlement, settlementsByGroup } from "./settlements.js";

/**
 * O3: no event of a key starts before every earlier stored one of that key is settled in its group: handled to
 * its end, dropped or parked.
 *
 * @param stored what the stream holds, or held: without it, an event that nobody ever started could not be missed.
 */
export function checkNoGap(history: readonly HistoryRecord[], stored: readonly StoredEvent[]): Fault[] {
  const settlements = settlementsByGroup(history);
  const seqsByKey = new Map<string, number[]>();
  for (const { seq, key } of [...stored].sort((a, b) => a.seq - b.seq)) {
    const seqs = seqsByKey.get(key);
    if (seqs === undefined) seqsByKey.set(key, [seq]);
    else seqs.push(seq);
  }
  return runsByKey(history).flatMap((runs) => {
    const [first] = runs;
    if (first === undefined) return [];
    return gapsOfKey(runs, seqsByKey.get(first.key) ?? [], settlements.get(first.group) ?? new Map());
  });
}

function gapsOfKey(
  runs: readonly HandlerRun[],
  seqs: readonly number[],
  settled: ReadonlyMap<number, Settlement>,
): Fault[] {
  const faults: Fault[] = [];
  const reported = new Set<number>();
  const settledMs = (seq: number): number => settled.get(seq)?.atMs ?? Number.POSITIVE_INFINITY;
  const earlierSettledMs = new Map<number, number>(); // By seq: when the last of all earlier ones was settled.
  let latestMs = Number.NEGATIVE_INFINITY;
  for (const seq of seqs) {
    earlierSettledMs.set(seq, latestMs);
    latestMs = Math.max(latestMs, settledMs(seq));
  }
  for (const run of runs) {
    if (reported.has(run.seq)) continue; // One report per event, not one per retry of it.
    if ((earlierSettledMs.get(run.seq) ?? latestMs) <= run.startMs) continue;
    const missing = seqs.filter((seq) => seq < run.seq && settledMs(seq) > run.startMs);
    if (missing.length === 0) continue;
    reported.add(run.seq);
    faults.push({
      invariant: "O3",
      key: run.key,
      seqs: [...missing, run.seq],
      processes: [run.process],
      atMs: run.startMs,
      text:
        `group ${run.group}, key ${JSON.stringify(run.key)}: seq ${run.seq} started in ${run.process} at ` +
        `${run.startMs.toFixed(3)} before ${missing.map((seq) => earlierText(seq, settled)).join(", ")}`,
    });
  }
  return faults;
}

function earlierText(seq: number, settled: ReadonlyMap<number, Settlement>): string {
  const settlement = settled.get(seq);
  if (settlement === undefined) return `seq ${seq} (never settled)`;
  return `seq ${seq} (${settlement.how} in ${settlement.process} at ${settlement.atMs.toFixed(3)})`;
}
