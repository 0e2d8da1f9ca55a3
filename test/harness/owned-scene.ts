import type { CheckAllResult } from "./checkers/check-all.js";
import { checkFence } from "./checkers/check-fence.js";
import type { HandlerRun } from "./checkers/handler-runs.js";
import { handlerRuns } from "./checkers/handler-runs.js";
import type { HistoryRecord, StoredEvent } from "./history-record.js";
import { type LaneScene, type LaneSceneOptions, startLaneScene } from "./lane-scene.js";
import type { WorkerProcess } from "./worker-process.js";

export interface OwnedSceneOptions extends Omit<LaneSceneOptions, "ackWaitMs" | "overlapAfterMs"> {
  /** Default 2,000. */
  leaseMs?: number;
  /** Default 30,000: nothing of an owned lane may have to wait for it. */
  ackWaitMs?: number;
  /** A freeze of any length can end a lease, where servers are down or links broken beside it. */
  anyFreezeOverlaps?: boolean;
}

/** A lane scene whose workers own their lanes, and whose checks include the fence tokens (O6). */
export async function startOwnedScene(options: OwnedSceneOptions = {}): Promise<LaneScene> {
  const { leaseMs = 2_000, ackWaitMs = 30_000, work, anyFreezeOverlaps = false, ...rest } = options;
  const scene = await startLaneScene({
    ...rest,
    ackWaitMs,
    // A beat can be up to an eighth of the lease old when a process freezes.
    overlapAfterMs: anyFreezeOverlaps ? 0 : leaseMs * 0.75,
    work: { assignment: "owned", leaseMs, ...work },
  });
  return { ...scene, check: async () => withFences(scene, await scene.check()) };
}

function withFences(scene: LaneScene, result: CheckAllResult): CheckAllResult {
  return { ...result, faults: [...result.faults, ...checkFence(scene.history.read())] };
}

export type Of<K extends HistoryRecord["kind"]> = Extract<HistoryRecord, { kind: K }>;

export function isKind<K extends HistoryRecord["kind"]>(kind: K, about?: string) {
  return (record: HistoryRecord): record is Of<K> =>
    record.kind === kind && (about === undefined || ("about" in record && record.about === about));
}

export function isStartIn(process: string, seq?: number) {
  return (record: HistoryRecord): record is Of<"handler-start"> =>
    record.kind === "handler-start" &&
    record.process === process &&
    (seq === undefined || record.seq === seq);
}

export function isNotified(process: string, type: string, seq?: number) {
  return (record: HistoryRecord): record is Of<"notification"> =>
    record.kind === "notification" &&
    record.process === process &&
    record.type === type &&
    (seq === undefined || record.seq === seq);
}

/** Waits until these workers have taken up `lanes` lanes, each its share to within one. */
export async function balanced(
  scene: LaneScene,
  workers: readonly WorkerProcess[],
  lanes: number,
  timeoutMs = 30_000,
): Promise<number[][]> {
  let shares: number[][] = [];
  await scene.until(
    async () => {
      const statuses = await Promise.all(workers.map((worker) => worker.status()));
      shares = statuses.map((status) => [...status.lanes]);
      return isBalanced(shares, lanes);
    },
    {
      timeoutMs,
      everyMs: 100,
      what: () =>
        `${lanes} lanes to be balanced over ${workers.length} workers (now ${JSON.stringify(shares)})`,
    },
  );
  return shares;
}

export function isBalanced(shares: readonly (readonly number[])[], lanes: number): boolean {
  const counts = shares.map((share) => share.length);
  const all = new Set(shares.flat());
  const total = counts.reduce((sum, count) => sum + count, 0);
  return all.size === lanes && total === lanes && Math.max(...counts) - Math.min(...counts) <= 1;
}

/** Waits until at least that many publishes are settled. */
export async function publishedAtLeast(scene: LaneScene, count: number, timeoutMs = 60_000): Promise<void> {
  const published = (): number =>
    scene.history.read().filter((record) => record.kind === "publish-settled").length;
  await scene.until(() => published() >= count, {
    timeoutMs,
    everyMs: 100,
    what: () => `${count} publishes to be settled (so far ${published()})`,
  });
}

/** What was stored, by what publishers were told: for a work queue, which keeps nothing that was handled. */
export function acknowledgedEvents(history: readonly HistoryRecord[]): StoredEvent[] {
  return history.flatMap((record) => {
    if (record.kind !== "publish-settled") return [];
    const { seq, key, lane, process, call } = record;
    return [{ seq, key, lane, type: "", publishedBy: { process, call } }];
  });
}

/** Runs of events that had been handled to their end before; none where nothing was redelivered. */
export function repeatedRuns(history: readonly HistoryRecord[]): HandlerRun[] {
  const handled = new Set<number>();
  return handlerRuns(history).filter((run) => {
    const again = handled.has(run.seq);
    if (run.outcome === "handled") handled.add(run.seq);
    return again;
  });
}
