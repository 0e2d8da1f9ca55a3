import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { checkAll } from "./harness/checkers/check-all.js";
import { checkFence } from "./harness/checkers/check-fence.js";
import { expectNoFaults } from "./harness/checkers/fault.js";
import { handlerRuns } from "./harness/checkers/handler-runs.js";
import { SCENE_GROUP, SCENE_STREAM } from "./harness/lane-scene.js";
import {
  acknowledgedEvents,
  balanced,
  isKind,
  isStartIn,
  publishedAtLeast,
  startOwnedScene,
} from "./harness/owned-scene.js";

const cluster = (lanes: number, retention: "limits" | "workqueue" = "limits") => ({
  server: { nodes: 3 as const },
  create: { subject: "orders", lanes, streamConfig: { num_replicas: 3, retention } },
});

test("R40, O1–O4, P1: owned: ten leader stepdowns of stream and bucket over 1,000 events in a three-node cluster", {
  timeout: 400_000,
}, async () => {
  await using scene = await startOwnedScene({ ...cluster(8), leaseMs: 6_000, work: { maxAckPending: 16 } });
  const handler = [{ act: { type: "succeed" as const, afterMs: 5 } }];
  const workers = await Promise.all(["A", "B", "C"].map((name) => scene.worker({ name, handler })));
  const events = { type: "turns" as const, count: 1_000, keys: 25 };
  const publisher = await scene.publisher({ name: "publisher", events, perSecond: 60 });
  for (let round = 1; round <= 10; round++) {
    await publishedAtLeast(scene, round * 90, 120_000);
    await scene.server.stepDown(SCENE_STREAM);
    if (round % 3 === 0) await scene.server.stepDown(`KV_lanekeeper_${SCENE_STREAM}`);
  }
  await publisher.finished(120_000);
  await scene.settled(1_000, 120_000);
  for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
  const { faults, repeats } = await scene.check();
  expectNoFaults(faults);
  console.log(`R40 owned: ${repeats} of 1,000 events handled again over ten stepdowns`);
});

test("R31, O4: on replicas, where the floor is 0 until the first ack, a takeover from an owner that never acked starts where it did", {
  timeout: 240_000,
}, async () => {
  await using scene = await startOwnedScene({ ...cluster(1), leaseMs: 3_000 });
  const publisher = scene.lanes.publisher();
  for (let n = 1; n <= 5; n++) await publisher.publish({ key: "old", type: "quick", data: { n } });
  const first = await scene.worker({ name: "first" });
  await scene.settled(5, 60_000);
  expect(await first.stop()).toEqual({ code: 0, signal: null });
  const m1 = await publisher.publish({ key: "k", type: "hang", data: { n: 1 } });
  // Two owners in a row that get the lane, start its first event and ack nothing.
  const hang = [{ when: { type: "hang" }, act: { type: "succeed" as const, afterMs: 600_000 } }];
  for (const name of ["second", "third"]) {
    const owner = await scene.worker({ name, handler: hang });
    await scene.seen(`${name} to start m1`, isStartIn(owner.id, m1.seq), 60_000);
    await owner.kill();
  }
  const last = await scene.worker({ name: "last" });
  await scene.settled(6, 60_000);
  expect(await last.stop()).toEqual({ code: 0, signal: null });
  const history = scene.history.read();
  expect(history.filter(isKind("killed"))).toHaveLength(2);
  const runs = handlerRuns(history).filter(({ process }) => process !== first.id);
  expect(runs.map(({ seq }) => seq)).toEqual([m1.seq, m1.seq, m1.seq]);
  expectNoFaults((await scene.check()).faults);
});

test("O1–O4: a work queue with replicas whose owners are killed one after the other ends empty", {
  timeout: 300_000,
}, async () => {
  const leaseMs = 3_000;
  await using scene = await startOwnedScene({
    ...cluster(8, "workqueue"),
    leaseMs,
    work: { maxAckPending: 16 },
  });
  const handler = [{ act: { type: "succeed" as const, afterMs: 5 } }];
  let workers = await Promise.all(["A", "B"].map((name) => scene.worker({ name, handler })));
  const events = { type: "turns" as const, count: 600, keys: 30 };
  const publisher = await scene.publisher({ name: "publisher", events, perSecond: 40 });
  for (let round = 1; round <= 4; round++) {
    await publishedAtLeast(scene, round * 120, 120_000);
    const [victim, ...rest] = workers;
    await victim?.kill();
    workers = [...rest, await scene.worker({ name: "next", handler })];
  }
  await publisher.finished(120_000);
  await scene.settled(600, 120_000);
  await balanced(scene, workers, 8, 60_000);
  const manager = await jetstreamManager(scene.connection, { checkAPI: false });
  // Nobody may answer for a moment.
  const isEmpty = async () => {
    const info = await manager.streams.info(SCENE_STREAM).catch(() => undefined);
    return info?.state.messages === 0;
  };
  await scene.until(isEmpty, {
    what: "the work queue to be empty",
    timeoutMs: 60_000,
  });
  for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
  const history = scene.history.read();
  const stored = acknowledgedEvents(history);
  expect(stored).toHaveLength(600);
  const { faults } = checkAll(history, stored, { groups: [SCENE_GROUP], ackWaitMs: leaseMs * 0.75 });
  expectNoFaults([...faults, ...checkFence(history)]);
});
