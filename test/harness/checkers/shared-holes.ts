import type { HistoryRecord } from "../history-record.js";
import type { HandlerRun } from "./handler-runs.js";

/** How far the holes reach that assignment `shared` states beside the frozen worker; milliseconds. */
export interface SharedHoles {
  /** How much of what a single server knew of its consumers can be gone when it is killed. */
  readonly forgottenMs: number;
  /** How long after the server's death, or its consumer's end, what it had delivered can still start. */
  readonly underWayMs: number;
}

/** What the holes are judged by. */
export interface SharedEvents {
  readonly kills: readonly { readonly sentAtMs: number; readonly atMs: number }[];
  readonly deletions: readonly { readonly lane: number; readonly sentAtMs: number; readonly atMs: number }[];
  /** Of `overlap-possible`. */
  readonly told: readonly { readonly process: string; readonly seq: number; readonly atMs: number }[];
}

export function sharedEvents(history: readonly HistoryRecord[]): SharedEvents {
  return {
    kills: history.filter((record) => record.kind === "server-killed"),
    deletions: history.filter((record) => record.kind === "consumer-deleted"),
    told: history.flatMap((record) => {
      if (record.kind !== "notification" || record.type !== "overlap-possible") return [];
      const { process, seq, atMs } = record;
      return seq === undefined ? [] : [{ process, seq, atMs }];
    }),
  };
}

/** A start may be recorded a little after the kill of the server that had delivered its event. */
export function isCrashOverlap(
  earlier: HandlerRun,
  later: HandlerRun,
  { kills }: SharedEvents,
  { forgottenMs, underWayMs }: SharedHoles,
): boolean {
  return kills.some(
    ({ sentAtMs, atMs }) =>
      earlier.startMs >= sentAtMs - forgottenMs &&
      earlier.startMs <= atMs + underWayMs &&
      later.startMs >= atMs,
  );
}

/**
 * The consumer went away at some moment from `sentAtMs` to `atMs`, and one made again can deliver at once. A handler that
 * has ended before its worker can have heard of it tells nothing.
 */
export function isDeletedOverlap(
  earlier: HandlerRun,
  later: HandlerRun,
  { deletions, told }: SharedEvents,
  { underWayMs }: SharedHoles,
): boolean {
  return deletions.some(
    ({ lane, sentAtMs, atMs }) =>
      lane === earlier.lane &&
      earlier.startMs <= atMs + underWayMs &&
      later.startMs >= sentAtMs &&
      (earlier.endMs <= atMs + underWayMs ||
        told.some(
          (one) => one.process === earlier.process && one.seq === earlier.seq && one.atMs >= sentAtMs,
        )),
  );
}
