import type { HistoryRecord } from "../history-record.js";
import type { Fault } from "./fault.js";
import { type HandlerRun, runsByKey } from "./handler-runs.js";
import { type OutOfTouch, outOfTouch } from "./out-of-touch.js";
import { isCrashOverlap, isDeletedOverlap, type SharedHoles, sharedEvents } from "./shared-holes.js";

export interface OneAtATimeOptions {
  /**
   * The lane consumers' ack wait. Given, it says which overlaps assignment `shared` states as its hole: see
   * `frozenOverlaps`. Absent: every overlap is a fault.
   */
  ackWaitMs?: number;
  /**
   * Given, it says which overlaps assignment `shared` states as its other holes: see `crashOverlaps` and
   * `deletedOverlaps`. Absent: every one of them is a fault.
   */
  shared?: SharedHoles;
}

/** An overlap that assignment `shared` states as a hole. */
export interface StatedOverlap extends Fault {
  /** The run that its process had in hand while it was out of touch, or when the server or the consumer went away. */
  readonly inHand: { readonly process: string; readonly seq: number; readonly run: number };
}

export interface OneAtATimeResult {
  readonly faults: readonly Fault[];
  /**
   * Overlaps of a run that its process had in hand while it was out of touch for at least `ackWaitMs`, with a run
   * that started after that time began. No faults, since the server cannot tell such a process from a dead one.
   */
  readonly frozenOverlaps: readonly StatedOverlap[];
  /**
   * Overlaps of a run that had started no longer before the server's kill than `forgottenMs`, with a run that started after
   * it. No faults, since the server that came back does not know that it had given the first one's event away.
   */
  readonly crashOverlaps: readonly StatedOverlap[];
  /**
   * Overlaps of a run that was under way when its lane's consumer was deleted, and of which its worker has told that it may
   * overlap, with a run that started after that. No faults, since the consumer that is made again gives the event out again.
   */
  readonly deletedOverlaps: readonly StatedOverlap[];
}

/**
 * O2: two handlers of one key never overlap, in any process. A killed process's open run ends at its death; a
 * frozen process's goes on through the freeze.
 */
export function checkOneAtATime(
  history: readonly HistoryRecord[],
  options: OneAtATimeOptions = {},
): OneAtATimeResult {
  const spans = longSpansByProcess(history, options.ackWaitMs);
  const { shared } = options;
  const events = sharedEvents(history);
  const faults: Fault[] = [];
  const frozenOverlaps: StatedOverlap[] = [];
  const crashOverlaps: StatedOverlap[] = [];
  const deletedOverlaps: StatedOverlap[] = [];
  for (const runs of runsByKey(history)) {
    for (const [earlier, later] of overlaps(runs)) {
      const fault = faultOf(earlier, later);
      const { process, seq, run } = earlier;
      const stated = { ...fault, inHand: { process, seq, run } };
      if (isFrozenOverlap(earlier, later, spans)) frozenOverlaps.push(stated);
      else if (shared && isCrashOverlap(earlier, later, events, shared)) crashOverlaps.push(stated);
      else if (shared && isDeletedOverlap(earlier, later, events, shared)) deletedOverlaps.push(stated);
      else faults.push(fault);
    }
  }
  return { faults, frozenOverlaps, crashOverlaps, deletedOverlaps };
}

/** Every pair of which the later one started before the earlier one ended. */
function* overlaps(runs: readonly HandlerRun[]): Generator<[HandlerRun, HandlerRun]> {
  let active: HandlerRun[] = [];
  for (const run of runs) {
    active = active.filter((other) => other.endMs > run.startMs);
    for (const other of active) yield [other, run];
    active.push(run);
  }
}

function isFrozenOverlap(
  earlier: HandlerRun,
  later: HandlerRun,
  spans: ReadonlyMap<string, readonly OutOfTouch[]>,
): boolean {
  return (spans.get(earlier.process) ?? []).some(
    (span) => earlier.startMs <= span.fromMs && earlier.endMs >= span.fromMs && later.startMs >= span.fromMs,
  );
}

function longSpansByProcess(
  history: readonly HistoryRecord[],
  ackWaitMs: number | undefined,
): Map<string, OutOfTouch[]> {
  const spans = new Map<string, OutOfTouch[]>();
  if (ackWaitMs === undefined) return spans;
  for (const span of outOfTouch(history)) {
    if (span.untilMs - span.fromMs < ackWaitMs) continue;
    spans.set(span.process, [...(spans.get(span.process) ?? []), span]);
  }
  return spans;
}

function faultOf(earlier: HandlerRun, later: HandlerRun): Fault {
  const end = Number.isFinite(earlier.endMs) ? `until ${earlier.endMs.toFixed(3)}` : "and has not ended";
  return {
    invariant: "O2",
    key: later.key,
    seqs: [earlier.seq, later.seq].sort((a, b) => a - b),
    processes: [earlier.process, later.process],
    atMs: later.startMs,
    text:
      `group ${later.group}, key ${JSON.stringify(later.key)}: seq ${later.seq} started in ${later.process} at ` +
      `${later.startMs.toFixed(3)} while ${earlier.process} ran seq ${earlier.seq} from ` +
      `${earlier.startMs.toFixed(3)} ${end}`,
  };
}
