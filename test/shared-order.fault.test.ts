import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { expectNoFaults } from "./harness/checkers/fault.js";
import { handlerRuns } from "./harness/checkers/handler-runs.js";
import { deleteConsumer } from "./harness/delete-consumer.js";
import type { HistoryRecord } from "./harness/history-record.js";
import { machineMs } from "./harness/history-recorder.js";
import { ackVerbOf } from "./harness/jetstream-frames.js";
import { killAndRestart } from "./harness/kill-server.js";
import { type LaneScene, SCENE_STREAM, startLaneScene } from "./harness/lane-scene.js";
import { startNatsProxy } from "./harness/nats-proxy.js";
import { recordWire } from "./harness/wire-recorder.js";

const TIMEOUT = { timeout: 240_000 };

test(
  "R20, O1, O2: 12 events of one key over 3 workers with 10 handlers each run one by one, in order",
  TIMEOUT,
  async () => {
    await using scene = await startLaneScene({ ackWaitMs: 5_000 });
    const handler = [{ act: { type: "succeed" as const, afterMs: 50 } }];
    const workers = await Promise.all(
      ["A", "B", "C"].map((name) => scene.worker({ name, handler, work: { concurrency: 10 } })),
    );
    const events = { type: "turns" as const, count: 12, keys: 1 };
    await (await scene.publisher({ name: "publisher", events })).finished(20_000);
    await scene.settled(12, 30_000);
    for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
    expectNoFaults((await scene.check()).faults);
    // Where a worker stalls, an event comes again.
    const order = [...new Set(handlerRuns(scene.history.read()).map((run) => run.seq))];
    expect(order).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
  },
);

test(
  "R31, O2, O4: a worker killed with -9 inside m1, four times over: a survivor runs m1, then m2",
  TIMEOUT,
  async () => {
    const ackWaitMs = 2_000;
    await using scene = await startLaneScene({ ackWaitMs });
    const takeovers: number[] = [];
    for (let round = 1; round <= 4; round++) {
      const name = `victim-${round}`;
      const handler = [{ when: { n: 1 }, act: { type: "succeed" as const, afterMs: 60_000 } }];
      const victim = await scene.worker({ name, handler });
      const events = { type: "turns" as const, count: 2, keys: 1 };
      await (await scene.publisher({ name: "publisher", events })).finished(20_000);
      const m1 = await scene.seen(`${name} to start m1`, isStartIn(victim.id));
      const survivor = await scene.worker({ name: "survivor" });
      await victim.kill();
      const again = await scene.seen("the survivor to start m1", isStartIn(survivor.id, m1.seq), 60_000);
      const killed = await scene.seen(
        "the kill",
        (record): record is Of<"killed"> => record.kind === "killed" && record.about === victim.id,
      );
      takeovers.push(again.atMs - killed.atMs);
      await scene.settled(round * 2, 60_000);
      expect(await survivor.stop()).toEqual({ code: 0, signal: null });
    }
    expectNoFaults((await scene.check()).faults);
    // On a quiet machine ackWait and two seconds; here only a lane that stays stuck may fail.
    for (const ms of takeovers) expect(ms).toBeLessThan(ackWaitMs + 20_000);
  },
);

// After a thaw, what a handler was about to do comes before any timer of the library. Side by side: they mostly wait.
test.concurrent.each([
  { ends: "before any timer runs", act: { type: "freeze-self" as const } },
  { ends: "after its signal", act: { type: "succeed" as const, afterMs: 60_000, heedsSignal: true } },
])(
  "R18, O2, O6: a worker frozen inside m1 past ackWait is overtaken, says so, and settles nothing when it wakes; its handler ends $ends",
  TIMEOUT,
  async ({ act }) => {
    const ackWaitMs = 5_000;
    await using scene = await startLaneScene({ ackWaitMs });
    await using proxy = await startNatsProxy(scene.server.url);
    using _wire = recordWire(proxy, scene.history);
    const sleeper = await scene.worker({
      name: "A",
      servers: proxy.url,
      handler: [{ when: { n: 1 }, act }],
    });
    const events = { type: "turns" as const, count: 2, keys: 1 };
    await (await scene.publisher({ name: "publisher", events })).finished(20_000);
    const m1 = await scene.seen("A to start m1", isStartIn(sleeper.id));
    if (act.type !== "freeze-self") sleeper.freeze();
    const other = await scene.worker({
      name: "B",
      handler: [{ when: { n: 1 }, act: { type: "succeed", afterMs: 5_000 } }],
    });
    await scene.seen("B to start m1", isStartIn(other.id, m1.seq), 30_000);
    sleeper.thaw();
    const thawed = await scene.seen("the thaw", isKind("thawed"));
    const m1Ends = await scene.seen(
      "A's handler of m1 to end",
      (record): record is Of<"handler-end"> =>
        record.kind === "handler-end" && record.process === sleeper.id && record.seq === m1.seq,
    );
    await scene.settled(2, 30_000);
    await scene.seen(
      "A to report the overlap",
      (record): record is Of<"notification"> =>
        record.kind === "notification" &&
        record.process === sleeper.id &&
        record.type === "overlap-possible" &&
        record.seq === m1.seq,
    );
    expect(await sleeper.stop()).toEqual({ code: 0, signal: null });
    expect(await other.stop()).toEqual({ code: 0, signal: null });

    const history = scene.history.read();
    const sentAfterThaw = history.filter(
      (record) =>
        record.kind === "wire" &&
        record.client === sleeper.id &&
        record.what !== "delivery" &&
        record.seq === m1.seq &&
        record.atMs > thawed.atMs,
    );
    expect(sentAfterThaw).toEqual([]);
    if (act.type !== "freeze-self") {
      // Its signal ended it, with the reason.
      expect(m1Ends).toMatchObject({ outcome: "failed" });
      const aborted = {
        text: "signal aborted",
        data: expect.objectContaining({ seq: m1.seq, code: "FENCED" }),
      };
      expect(history).toContainEqual(expect.objectContaining({ process: sleeper.id, ...aborted }));
    }
    const { faults, frozenOverlaps } = await scene.check();
    expectNoFaults(faults);
    const overlapping = frozenOverlaps.map(({ seqs, processes }) => ({ seqs, processes }));
    expect(overlapping).toContainEqual({ seqs: [m1.seq, m1.seq], processes: [sleeper.id, other.id] });
    // Its handler may go on for so long that B's m2 overlaps, too; nothing else may.
    for (const { inHand } of frozenOverlaps)
      expect(inHand).toMatchObject({ process: sleeper.id, seq: m1.seq });
    const secondStart = handlerRuns(history).find((run) => run.seq > m1.seq);
    const otherM1 = handlerRuns(history).find((run) => run.process === other.id && run.seq === m1.seq);
    expect(secondStart?.startMs).toBeGreaterThanOrEqual(otherM1?.endMs ?? Number.NaN);
  },
);

test(
  "O1–O4, P1: a server killed with -9 and restarted under load loses nothing and breaks no order",
  TIMEOUT,
  async () => {
    await using scene = await startLaneScene({ ackWaitMs: 6_000 });
    const handler = [{ act: { type: "succeed" as const, afterMs: 5 } }];
    const workers = await Promise.all(["A", "B"].map((name) => scene.worker({ name, handler })));
    const events = { type: "turns" as const, count: 2_000, keys: 40 };
    const publisher = await scene.publisher({ name: "publisher", events, perSecond: 400 });
    for (const share of [500, 1_200]) {
      await scene.settled(share, 60_000);
      await killAndRestart(scene);
    }
    await publisher.finished(60_000);
    await scene.settled(2_000, 60_000);
    for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
    expectNoFaults((await scene.check()).faults);
    expect(await scene.stored()).toHaveLength(2_000);
  },
);

// Acks match the stream sequence only: one that comes late settles what somebody else is running.
test(
  "O2, O6: an ack that got lost is not sent again once its lane's consumer is another one",
  TIMEOUT,
  async () => {
    await using scene = await startLaneScene({ ackWaitMs: 12_000, create: { subject: "orders", lanes: 1 } });
    await using proxy = await startNatsProxy(scene.server.url);
    const lost = proxy.intercept({
      direction: "to-server",
      match: (frame) => ackVerbOf(frame) === "+ACK",
      action: "drop",
    });
    const early = await scene.worker({ name: "A", servers: proxy.url });
    const events = { type: "turns" as const, count: 2, keys: 1 };
    await (await scene.publisher({ name: "publisher", events })).finished(20_000);
    await lost.acted(1);
    proxy.refuse();
    proxy.cut();
    const act = { type: "succeed" as const, afterMs: 4_000 };
    const late = await scene.worker({ name: "B", handler: [{ when: { n: 1 }, act }] });
    await deleteConsumers(scene);
    await scene.seen("B to start m1", isStartIn(late.id), 30_000);
    lost.remove();
    const before = proxy.accepted;
    proxy.admit();
    await scene.until(() => proxy.accepted > before, { what: "A to come back" });
    await scene.settled(2, 30_000);
    await scene.until(() => handlerRuns(scene.history.read()).every((run) => run.outcome === "handled"), {
      what: "every handler to end",
    });
    for (const worker of [early, late]) expect(await worker.stop()).toEqual({ code: 0, signal: null });
    const { faults, deletedOverlaps } = await scene.check();
    expectNoFaults([...faults, ...deletedOverlaps]);
  },
);

test("workers of a new group that start at the same moment in a three-node cluster all start", {
  timeout: 240_000,
}, async () => {
  await using scene = await startLaneScene({
    ackWaitMs: 5_000,
    server: { nodes: 3 },
    create: { subject: "orders", lanes: 16, streamConfig: { num_replicas: 3 } },
  });
  const workers = await Promise.all(["A", "B", "C"].map((name) => scene.worker({ name })));
  const events = { type: "turns" as const, count: 100, keys: 25 };
  await (await scene.publisher({ name: "publisher", events })).finished(60_000);
  await scene.settled(100, 60_000);
  for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
  expectNoFaults((await scene.check()).faults);
});

test("R40, O1–O4, P1: ten leader stepdowns over 1,000 events in a three-node cluster", {
  timeout: 240_000,
}, async () => {
  await using scene = await startLaneScene({
    ackWaitMs: 5_000,
    server: { nodes: 3 },
    create: { subject: "orders", lanes: 8, streamConfig: { num_replicas: 3 } },
  });
  const handler = [{ act: { type: "succeed" as const, afterMs: 5 } }];
  const workers = [];
  for (const name of ["A", "B", "C"]) workers.push(await scene.worker({ name, handler }));
  const events = { type: "turns" as const, count: 1_000, keys: 25 };
  const publisher = await scene.publisher({ name: "publisher", events, perSecond: 100 });
  for (let round = 1; round <= 10; round++) {
    await publishedAtLeast(scene, round * 90);
    await scene.server.stepDown(SCENE_STREAM);
  }
  await publisher.finished(120_000);
  await scene.settled(1_000, 120_000);
  for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
  expectNoFaults((await scene.check()).faults);
  expect(await scene.stored()).toHaveLength(1_000);
});

test(
  "O2, O6: a worker cut off inside m1 past ackWait fences itself while it is cut off, and settles nothing when it is back",
  TIMEOUT,
  async () => {
    const ackWaitMs = 6_000;
    await using scene = await startLaneScene({ ackWaitMs });
    await using proxy = await startNatsProxy(scene.server.url);
    using _wire = recordWire(proxy, scene.history);
    const act = { type: "succeed" as const, afterMs: 30_000, heedsSignal: true };
    const lonely = await scene.worker({
      name: "A",
      servers: proxy.url,
      handler: [{ when: { type: "tick" }, act }],
    });
    const events = { type: "turns" as const, count: 2, keys: 1 };
    await (await scene.publisher({ name: "publisher", events })).finished(20_000);
    const m1 = await scene.seen("A to start m1", isStartIn(lonely.id));
    proxy.blackhole();
    scene.history.record({ kind: "frozen", about: lonely.id, why: "cut off" });
    const other = await scene.worker({ name: "B" });
    const fenced = await scene.seen(
      "A's handler to be ended by its signal",
      (record): record is Of<"handler-end"> =>
        record.kind === "handler-end" && record.process === lonely.id && record.seq === m1.seq,
    );
    expect(fenced).toMatchObject({ outcome: "failed" });
    await scene.until(async () => !(await lonely.status()).healthy, {
      what: "the cut-off worker to say that it is not healthy",
      timeoutMs: 25_000,
    });
    await scene.settled(2, 60_000);
    scene.history.record({ kind: "thawed", about: lonely.id });
    proxy.restore();
    await scene.until(async () => (await lonely.status()).healthy, {
      what: "the worker to be healthy again",
      timeoutMs: 30_000,
    });
    const later = { ...events, eventType: "tock" };
    await (await scene.publisher({ name: "publisher", events: later })).finished(20_000);
    await scene.settled(4, 60_000);
    expect(await lonely.stop()).toEqual({ code: 0, signal: null });
    expect(await other.stop()).toEqual({ code: 0, signal: null });
    const history = scene.history.read();
    const answers = history.filter(
      (record) =>
        record.kind === "wire" &&
        record.client === lonely.id &&
        record.seq === m1.seq &&
        record.what !== "delivery" &&
        record.what !== "+WPI",
    );
    expect(answers).toEqual([]);
    // Fenced before the server gave it away: with a live event loop there is no overlap to excuse.
    const { faults, frozenOverlaps } = await scene.check();
    expectNoFaults(faults);
    expect(frozenOverlaps).toEqual([]);
  },
);

test(
  "O1–O4, P1: workers and publisher whose connections are reset over and over lose and swap nothing",
  TIMEOUT,
  async () => {
    await using scene = await startLaneScene({ ackWaitMs: 6_000 });
    await using proxy = await startNatsProxy(scene.server.url);
    const handler = [{ act: { type: "succeed" as const, afterMs: 3 } }];
    const workers = await Promise.all(
      ["A", "B"].map((name) => scene.worker({ name, handler, servers: proxy.url })),
    );
    const events = { type: "turns" as const, count: 1_500, keys: 30 };
    const publisher = await scene.publisher({
      name: "publisher",
      events,
      perSecond: 300,
      servers: proxy.url,
    });
    for (let round = 1; round <= 8; round++) {
      await publishedAtLeast(scene, round * 150);
      proxy.cut();
    }
    await publisher.finished(60_000);
    await scene.settled(1_500, 60_000);
    for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
    expectNoFaults((await scene.check()).faults);
    expect(await scene.stored()).toHaveLength(1_500);
  },
);

test(
  "R40, O1–O4: lane consumers deleted under running workers are made again where they were",
  TIMEOUT,
  async () => {
    await using scene = await startLaneScene({ ackWaitMs: 3_000, create: { subject: "orders", lanes: 4 } });
    const handler = [{ act: { type: "succeed" as const, afterMs: 3 } }];
    const workers = await Promise.all(["A", "B"].map((name) => scene.worker({ name, handler })));
    const events = { type: "turns" as const, count: 1_500, keys: 30 };
    const publisher = await scene.publisher({ name: "publisher", events, perSecond: 300 });
    for (const share of [300, 700]) {
      await scene.settled(share, 60_000);
      await deleteConsumers(scene);
    }
    await publisher.finished(60_000);
    await scene.settled(1_500, 60_000);
    for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
    expectNoFaults((await scene.check()).faults);
  },
);

type Of<K extends HistoryRecord["kind"]> = Extract<HistoryRecord, { kind: K }>;

function isKind<K extends HistoryRecord["kind"]>(kind: K) {
  return (record: HistoryRecord): record is Of<K> => record.kind === kind;
}

function isStartIn(process: string, seq?: number) {
  return (record: HistoryRecord): record is Of<"handler-start"> =>
    record.kind === "handler-start" &&
    record.process === process &&
    (seq === undefined || record.seq === seq);
}

async function publishedAtLeast(scene: LaneScene, count: number): Promise<void> {
  const published = (): number =>
    scene.history.read().filter((record) => record.kind === "publish-settled").length;
  await scene.until(() => published() >= count, {
    timeoutMs: 60_000,
    everyMs: 100,
    what: () => `${count} publishes to be settled (so far ${published()})`,
  });
}

/** Deletes every lane's consumer under whoever reads it, and records that. */
async function deleteConsumers(scene: LaneScene): Promise<void> {
  const manager = await jetstreamManager(scene.connection, { checkAPI: false });
  for await (const { name } of manager.consumers.list(SCENE_STREAM)) {
    const sentAtMs = machineMs();
    await deleteConsumer(manager, SCENE_STREAM, name);
    scene.history.record({ kind: "consumer-deleted", lane: Number(name.split("-").at(-1)), sentAtMs });
  }
}
