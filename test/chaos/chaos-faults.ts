import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { awaitCondition } from "../harness/await-condition.js";
import { type LaneScene, SCENE_STREAM } from "../harness/lane-scene.js";
import type { SeededRandom } from "../harness/seeded-random.js";
import type { WorkerSlot } from "./worker-slot.js";

export interface ChaosStage {
  readonly scene: LaneScene;
  readonly slots: readonly WorkerSlot[];
  readonly random: SeededRandom;
  readonly leaseMs: number;
  readonly say: (text: string) => void;
  /** A server is down: a second one would end the cluster's majority. */
  serverDown: boolean;
}

interface ChaosFault {
  readonly weight: number;
  /** Begins it and resolves when it is over and mended. */
  readonly run: (stage: ChaosStage, slot: WorkerSlot) => Promise<void>;
}

const faults: readonly ChaosFault[] = [
  { weight: 5, run: killWorker },
  { weight: 4, run: freezeWorker },
  { weight: 2, run: killLeader },
  { weight: 4, run: cutLinks },
  { weight: 2, run: silenceLinks },
  { weight: 3, run: delayLinks },
];

/** The next fault, at a worker where none is under way; undefined when there is no such worker. */
export function beginFault(stage: ChaosStage): Promise<void> | undefined {
  const { random, slots } = stage;
  const wheel = faults.flatMap((fault) => Array.from({ length: fault.weight }, () => fault));
  const { run } = random.pick(wheel);
  const quiet = slots.filter(({ busy }) => !busy);
  if (quiet.length === 0) return undefined;
  const slot = random.pick(quiet);
  slot.busy = true;
  return run(stage, slot).finally(() => {
    slot.busy = false;
  });
}

async function killWorker({ say, random }: ChaosStage, slot: WorkerSlot): Promise<void> {
  const downMs = random.between(0, 2_000);
  say(`kill -9 ${slot.process.id}, another one after ${Math.round(downMs)} ms`);
  await slot.kill();
  await sleep(downMs);
  await slot.start();
}

async function freezeWorker({ say, random, leaseMs }: ChaosStage, slot: WorkerSlot): Promise<void> {
  const frozenMs = random.between(0.2, 2) * leaseMs;
  say(`SIGSTOP ${slot.process.id} for ${Math.round(frozenMs)} ms`);
  slot.process.freeze();
  await sleep(frozenMs);
  slot.process.thaw();
}

async function killLeader(stage: ChaosStage): Promise<void> {
  const { say, random, scene } = stage;
  const downMs = random.between(500, 4_000);
  if (stage.serverDown) return;
  stage.serverDown = true;
  try {
    const leader = await leaderOf(scene);
    const node = scene.server.nodes.find(({ name }) => name === leader);
    if (node === undefined) return;
    say(`kill -9 of the stream's leader ${leader}, back after ${Math.round(downMs)} ms`);
    await node.kill();
    await sleep(downMs);
    await node.restart();
    // A replica that is not back yet and the next leader together would be a majority.
    await awaitCondition(() => replicasAreCurrent(scene), {
      timeoutMs: 60_000,
      everyMs: 250,
      what: "every replica to be current again",
    });
  } finally {
    stage.serverDown = false;
  }
}

async function cutLinks({ say }: ChaosStage, slot: WorkerSlot): Promise<void> {
  say(`reset of the connections of ${slot.process.id}`);
  slot.cut();
}

async function silenceLinks({ say, random, leaseMs }: ChaosStage, slot: WorkerSlot): Promise<void> {
  const silentMs = random.between(0.2, 2) * leaseMs;
  say(`nothing goes through to or from ${slot.process.id} for ${Math.round(silentMs)} ms`);
  slot.blackhole();
  await sleep(silentMs);
  slot.heal();
}

async function delayLinks({ say, random }: ChaosStage, slot: WorkerSlot): Promise<void> {
  const direction = random.pick(["to-server", "to-client"] as const);
  const delayMs = random.between(50, 1_500);
  const forMs = random.between(1_000, 6_000);
  say(`${slot.process.id}: ${Math.round(delayMs)} ms late ${direction} for ${Math.round(forMs)} ms`);
  slot.delay(direction, delayMs);
  await sleep(forMs);
  slot.heal();
}

async function leaderOf(scene: LaneScene): Promise<string | undefined> {
  const { cluster } = await streamInfo(scene);
  return cluster?.leader;
}

async function replicasAreCurrent(scene: LaneScene): Promise<boolean> {
  try {
    const { cluster } = await streamInfo(scene);
    const replicas = cluster?.replicas ?? [];
    return replicas.length === 2 && replicas.every(({ current, offline }) => current && offline !== true);
  } catch {
    return false; // An election is under way.
  }
}

async function streamInfo(scene: LaneScene) {
  const manager = await jetstreamManager(scene.connection, { timeout: 2_000, checkAPI: false });
  return await awaitCondition(() => manager.streams.info(SCENE_STREAM).catch(() => undefined), {
    timeoutMs: 30_000,
    everyMs: 250,
    what: "the stream to have a leader",
  });
}
