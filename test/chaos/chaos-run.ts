import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "../harness/checkers/fault.js";
import { OwnedResources } from "../harness/owned-resources.js";
import { startOwnedScene } from "../harness/owned-scene.js";
import { SeededRandom } from "../harness/seeded-random.js";
import { beginFault, type ChaosStage } from "./chaos-faults.js";
import { describeStandstill } from "./standstill.js";
import { WorkerSlot } from "./worker-slot.js";

export interface ChaosOptions {
  readonly seed: number;
  /** How long faults go on, milliseconds. */
  readonly durationMs: number;
  /** How long what was stored may take to be handled once nothing is broken any more. */
  readonly drainMs: number;
  readonly leaseMs: number;
  readonly publishPerSecond: number;
  /** Between the beginnings of two faults, on average. */
  readonly everyMs: number;
  /** Told what happens, as it happens. */
  readonly say: (text: string) => void;
}

export interface ChaosResult {
  readonly faults: readonly Fault[];
  readonly stored: number;
  /** Successful runs beyond an event's first, which O4 allows. */
  readonly repeats: number;
  /** Overlaps with a run that a frozen process had in hand. */
  readonly frozenOverlaps: number;
  /** From when nothing was broken any more until everything was handled. */
  readonly drainedMs: number;
}

const workers = 4;
const lanes = 64;
const keys = 500;

/**
 * Three nodes, four workers, a publisher, and faults one after another and beside each other; then everything is mended
 * and has to be handled. The seed decides which faults; how they meet the processes' own timing it cannot.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { seed, say, leaseMs, everyMs } = options;
  const random = new SeededRandom(seed);
  await using owned = new OwnedResources();
  const scene = owned.own(
    await startOwnedScene({
      leaseMs,
      server: { nodes: 3 },
      create: { subject: "orders", lanes, streamConfig: { num_replicas: 3 } },
      work: { maxAckPending: 64 },
      anyFreezeOverlaps: true,
    }),
  );
  const slots: WorkerSlot[] = [];
  for (let n = 1; n <= workers; n++) slots.push(owned.own(await WorkerSlot.open(`worker-${n}`, scene)));
  await Promise.all(slots.map((slot) => slot.start()));
  const events = { type: "zipf" as const, keys, seed };
  const publisher = await scene.publisher({
    name: "publisher",
    events,
    perSecond: options.publishPerSecond,
    publisher: { timeoutMs: 100_000 },
  });
  const stage: ChaosStage = { scene, slots, random, leaseMs, say, serverDown: false };
  const underWay = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const until = performance.now() + options.durationMs;
  while (performance.now() < until && failures.length === 0) {
    await sleep(random.between(0.3, 1.7) * everyMs);
    const fault = beginFault(stage);
    if (fault === undefined) continue;
    const ended = fault
      .catch((error: unknown) => void failures.push(error))
      .finally(() => underWay.delete(ended));
    underWay.add(ended);
  }
  await Promise.all(underWay);
  if (failures.length > 0) throw failures[0];
  say("everything is mended");
  const mendedAt = performance.now();
  await publisher.stop(150_000);
  const stored = await scene.stored();
  try {
    await scene.settled(stored.length, options.drainMs);
  } catch (error) {
    const statuses = await Promise.all(
      slots.map(async ({ process }) => [process.id, await process.status()]),
    );
    say(`${await describeStandstill(scene)}\n${JSON.stringify(statuses)}`);
    throw error;
  }
  const drainedMs = performance.now() - mendedAt;
  for (const slot of slots) {
    const { code, signal } = await slot.process.stop(60_000);
    if (code !== 0)
      throw new Error(`${slot.process.id} ended with ${code ?? signal}:\n${slot.process.output()}`);
  }
  const { faults, repeats, frozenOverlaps } = await scene.check();
  return { faults, stored: stored.length, repeats, frozenOverlaps: frozenOverlaps.length, drainedMs };
}
