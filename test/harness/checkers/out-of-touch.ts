import type { HistoryRecord } from "../history-record.js";

/**
 * A time in which a process could not keep its events alive: it was frozen, cut off, or its event loop blocked; by a test,
 * or by a machine that did not let it run, which the process notices and tells itself.
 */
export interface OutOfTouch {
  readonly process: string;
  readonly fromMs: number;
  /** Infinity when nobody thawed it; its death ends it too. */
  readonly untilMs: number;
}

export function outOfTouch(history: readonly HistoryRecord[]): OutOfTouch[] {
  const spans: OutOfTouch[] = [];
  const since = new Map<string, number>();
  for (const record of history) {
    if (record.kind === "notification" && record.lateMs !== undefined) {
      const { process, atMs, lateMs } = record;
      spans.push({ process, fromMs: atMs - lateMs, untilMs: atMs });
    } else if (record.kind === "frozen") {
      if (!since.has(record.about)) since.set(record.about, record.atMs);
    } else if (record.kind === "thawed" || record.kind === "killed" || record.kind === "exited") {
      const fromMs = since.get(record.about);
      if (fromMs === undefined) continue;
      since.delete(record.about);
      spans.push({ process: record.about, fromMs, untilMs: record.atMs });
    }
  }
  for (const [process, fromMs] of since) spans.push({ process, fromMs, untilMs: Number.POSITIVE_INFINITY });
  return spans;
}
