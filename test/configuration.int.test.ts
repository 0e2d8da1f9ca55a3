import { setTimeout as sleep } from "node:timers/promises";
import { openLanes } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { laneOf, layoutConfig } from "@lanekeeper/partitioner";
import type { StreamConfig } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { deleteConsumer } from "./harness/delete-consumer.js";
import { remakeStream } from "./harness/remake-stream.js";
import { gate, openScene, type Scene } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const timeout = { timeout: 60_000 };
/** Of a request by hand: the client's own second is short on a busy machine. */
const patient = { timeout: 20_000 };

/** What an old file of a configuration tool would do to the stream, each in one update. */
const oldFiles: [string, (scene: Scene, config: StreamConfig) => Partial<StreamConfig>, string][] = [
  ["drops the metadata", () => ({ metadata: {} }), "LAYOUT_DIFFERS"],
  [
    "changes the lanes under the same generation",
    (_, { metadata }) => ({ metadata: { ...metadata, "lanekeeper.lanes": "8" } }),
    "LAYOUT_DIFFERS",
  ],
  ["takes subjects away", (_, { subjects }) => ({ subjects: subjects.slice(1) }), "LAYOUT_DIFFERS"],
  [
    "damages the metadata",
    (_, { metadata }) => ({ metadata: { ...metadata, "lanekeeper.hash": "md5" } }),
    "LAYOUT_DIFFERS",
  ],
  [
    "goes to a later generation",
    (_, { metadata }) => ({ metadata: { ...metadata, "lanekeeper.generation": "2" } }),
    "LAYOUT_CHANGED",
  ],
];

test.each(oldFiles)(
  "configuration tool %s: worker and publisher stop loudly, nothing is handled meanwhile, both resume when it is restored",
  timeout,
  async (_, change, code) => {
    await using scene = await openScene(server);
    const run = await scene.worker();
    const publisher = scene.lanes.publisher({ timeoutMs: 3_000 });
    await publisher.publish({ key: "K", type: "t", data: 0 });
    await scene.ended(1);
    const { config } = await scene.manager.streams.info(scene.stream);
    await scene.manager.streams.update(scene.stream, change(scene, config));
    const told = await run.told("unhealthy", undefined, 10_000);
    expect(told.error).toMatchObject({ code });
    expect(run.worker.status()).toMatchObject({ healthy: false, error: { code } });
    await awaitCondition(
      () =>
        publisher.publish({ key: "K", type: "t", data: 1 }).then(
          () => false,
          (error) => error.code === code,
        ),
      { what: `a publish to be refused with ${code}`, timeoutMs: 10_000, everyMs: 200 },
    );
    const before = scene.runs.length;
    // Stored by a publisher that knows nothing of lanes; handled only once the layout is back.
    const lane = Number(config.subjects?.at(-1)?.split(".")[1]);
    await scene.connection.request(`${scene.subject}.${lane}.${keyOf(lane)}.t`, "9", patient);
    await sleep(500);
    expect(scene.runs.length).toBe(before);
    await scene.manager.streams.update(scene.stream, {
      metadata: config.metadata ?? {},
      subjects: config.subjects,
    });
    await run.told("healthy", undefined, 10_000);
    await awaitCondition(() => scene.runs.some(({ data }) => data === 9), { what: "the held event" });
    await awaitCondition(
      () =>
        publisher.publish({ key: "K", type: "t", data: 7 }).then(
          () => true,
          () => false,
        ),
      { what: "publishing to resume", timeoutMs: 10_000, everyMs: 200 },
    );
    await awaitCondition(() => scene.runs.some(({ data }) => data === 7), { what: "the new event" });
    await scene.expectNoFaults();
  },
);

function keyOf(lane: number): string {
  for (let n = 0; ; n++) if (laneOf(`k${n}`, 4) === lane) return `k${n}`;
}

test("R40, O4: the stream deleted and made again: said within 10 s, work starts at its first event, nothing is skipped because of old claims", {
  timeout: 180_000,
}, async () => {
  await using scene = await openScene(server);
  const incarnations: string[] = [];
  const run = await scene.worker((_, { fence }) => void incarnations.push(fence.incarnation), {
    deliverPolicy: "new",
  });
  await scene.publish("a", "b", "c", "d", "e", "f");
  await scene.ended(6);
  const { config } = await scene.manager.streams.info(scene.stream);
  await scene.manager.streams.delete(scene.stream);
  expect((await run.told("unhealthy", undefined, 10_000)).error).toMatchObject({
    code: expect.any(String),
  });
  await remakeStream(scene.manager, { ...config, name: scene.stream });
  for (const [index, key] of ["a", "b", "c", "d"].entries()) {
    const subject = `${scene.subject}.${laneOf(key, 4)}.${key}.t`;
    await scene.connection.request(subject, JSON.stringify({ again: index }), patient);
  }
  await scene.ended(10, 45_000);
  expect(
    scene.runs
      .slice(6)
      .map(({ seq }) => seq)
      .sort(),
  ).toEqual([1, 2, 3, 4]);
  await run.told("healthy", undefined, 45_000);
  expect(await run.told("rewound")).toMatchObject({ error: { code: "STREAM_NOT_FOUND" } });
  expect(new Set(incarnations).size).toBe(2);
  await scene.publish("a", "b");
  // What is delivered into a pull of the old stream comes again after ackWait, 30 s.
  await scene.ended(12, 45_000);
});

test(
  "R40: a lane's consumer deleted under a running worker comes back by itself and nothing is handled twice",
  timeout,
  async () => {
    await using scene = await openScene(server);
    const run = await scene.worker();
    await scene.publish("K", "K", "K");
    await scene.ended(3);
    await deleteConsumer(scene.manager, scene.stream, `lk-audit-g1-${laneOf("K", 4)}`);
    await scene.publish("K", "K");
    await scene.ended(5, 20_000);
    expect(await run.told("rewound")).toMatchObject({ error: { code: "CONSUMER_NOT_FOUND" } });
    expect(scene.runs.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    await awaitCondition(() => run.worker.status().healthy, { what: "the worker to be healthy" });
    await scene.expectNoFaults();
  },
);

test(
  "R40: all consumers deleted under a worker that was started on idle lanes: what was settled before it came is not handled again",
  timeout,
  async () => {
    await using scene = await openScene(server);
    const first = await scene.worker();
    await scene.publish("a", "b", "c", "d", "e", "f");
    await scene.ended(6);
    await first.worker.close();
    await scene.worker();
    for (let lane = 0; lane < 4; lane++) {
      await deleteConsumer(scene.manager, scene.stream, `lk-audit-g1-${lane}`);
    }
    await scene.publish("a", "b", "c", "d", "e", "f");
    await awaitCondition(() => scene.runs.filter(({ seq }) => seq > 6).length === 6, {
      what: "the new events",
    });
    expect(scene.runs).toHaveLength(12);
  },
);

test(
  "R40: the stream purged under a worker with a backlog: what is gone is told or skipped, new events are handled",
  timeout,
  async () => {
    await using scene = await openScene(server);
    const hold = gate();
    const slow = await scene.worker(({ seq }) => (seq === 1 ? hold.opened : undefined));
    await scene.publish("K", "K", "K", "K", "K");
    await awaitCondition(() => scene.runs.length === 1, { what: "the first run" });
    await scene.manager.streams.purge(scene.stream);
    await scene.publish("K", "x");
    await sleep(500); // The new event of the key may be delivered meanwhile; it must wait.
    hold.open();
    await awaitCondition(() => scene.runs.filter(({ seq, endedAt }) => seq > 5 && endedAt).length === 2, {
      what: "the events after the purge",
    });
    await awaitCondition(async () => (await scene.lanes.group("audit").status()).inFlight === 0, {
      what: "nothing to be in flight",
    });
    expect(slow.worker.status().healthy).toBe(true);
    // O2 within a worker: the purge freed the lane on the server while the key's handler was still running.
    const ofK = scene.runs.filter(({ key }) => key === "K");
    for (const [index, run] of ofK.slice(1).entries()) {
      expect(run.startedAt).toBeGreaterThanOrEqual(ofK[index]?.endedAt ?? Number.POSITIVE_INFINITY);
    }
  },
);

const foreign: [string, (scene: Scene) => string][] = [
  ["in the wrong lane", (scene) => `${scene.subject}.${(laneOf("K", 4) + 1) % 4}.K.t`],
  ["spelled %41 for A", (scene) => `${scene.subject}.${laneOf("A", 4)}.%41.t`],
];

test.each(foreign)(
  "foreign publishers, O1: an event %s is told, its lane stops visibly, others go on, and removing it frees the lane",
  timeout,
  async (_, subjectOf) => {
    await using scene = await openScene(server);
    const run = await scene.worker(undefined, { ackWaitMs: 6_000 });
    const subject = subjectOf(scene);
    const lane = Number(subject.split(".")[1]);
    await scene.connection.request(subject, "1", patient);
    expect(await run.told("misrouted")).toMatchObject({ lane, seq: 1, error: { code: "MISROUTED" } });
    await awaitCondition(() => run.worker.status().error?.code === "MISROUTED", {
      what: "status to say so",
      timeoutMs: 10_000,
    });
    await scene.publish(keyOf(lane), keyOf((lane + 1) % 4));
    await scene.ended(1);
    await sleep(7_000); // Longer than ackWait: it must not come again and again.
    expect(scene.runs.map((one) => one.lane)).toEqual([(lane + 1) % 4]);
    expect(run.notifications.filter(({ type }) => type === "misrouted")).toHaveLength(1);
    await scene.manager.streams.purge(scene.stream, { filter: subject });
    await scene.ended(2, 15_000);
    await run.told("healthy");
    expect(run.worker.status().healthy).toBe(true);
  },
);

test("R42: a durable of ours with MaxAckPending 1000 or another filter is refused by name, with what differs", async () => {
  await using scene = await openScene(server);
  const first = await scene.worker();
  await first.worker.close();
  const name = "lk-audit-g1-2";
  await scene.manager.consumers.update(scene.stream, name, { max_ack_pending: 1_000 });
  const starting = scene.worker();
  await expect(starting).rejects.toMatchObject({ code: "CONSUMER_DIFFERS" });
  await expect(starting).rejects.toThrow(/lk-audit-g1-2.*max_ack_pending.*1000/);
  await scene.manager.consumers.update(scene.stream, name, { max_ack_pending: 1 });
  const second = await scene.worker();
  expect(second.worker.status().healthy).toBe(true);
});

test("R42: changed ackWaitMs, retry and handler limits are not drift: longer at once, shorter once nobody pulls", async () => {
  await using scene = await openScene(server);
  const first = await scene.worker(undefined, { ackWaitMs: 5_000 });
  const ackWaits = async () =>
    new Set((await scene.consumers()).map(({ config }) => Number(config.ack_wait) / 1e6));
  await scene.worker(undefined, { ackWaitMs: 10_000, retry: { attempts: 2 }, handlerTimeoutMs: 1_000 });
  expect(await ackWaits()).toEqual(new Set([10_000]));
  const third = await scene.worker(undefined, { ackWaitMs: 2_000, onExhausted: "drop" });
  expect(await ackWaits()).toEqual(new Set([10_000]));
  await scene.publish("a", "b", "c");
  await scene.ended(3);
  expect(third.worker.status().healthy && first.worker.status().healthy).toBe(true);
});

test("R42: a foreign consumer that overlaps on a work queue is a typed error", async () => {
  await using scene = await openScene(server, { create: { streamConfig: { retention: "workqueue" } } });
  await scene.manager.consumers.add(scene.stream, { durable_name: "foreign", ack_policy: "explicit" });
  await expect(scene.worker()).rejects.toMatchObject({ code: "CONSUMER_OVERLAPS" });
  await scene.manager.consumers.delete(scene.stream, "foreign");
  const run = await scene.worker();
  await expect(scene.worker(undefined, { group: "second" })).rejects.toMatchObject({
    code: "CONSUMER_OVERLAPS",
  });
  await expect(scene.worker(undefined, { group: "third", deliverPolicy: "new" })).rejects.toMatchObject({
    code: "INVALID_OPTIONS",
  });
  expect(run.worker.status().healthy).toBe(true);
});

test.each(["workqueue", "interest"] as const)(
  "O1, O4: a %s stream: every event is handled once and the stream ends empty",
  async (retention) => {
    await using scene = await openScene(server, { create: { streamConfig: { retention } } });
    const run = await scene.worker(
      ({ attempt, seq }) => {
        if (seq === 2 && attempt === 1) throw new Error("once more");
      },
      { retry: { initialDelayMs: 10 } },
    );
    await scene.publish("a", "a", "b", "c", "d", "a");
    await scene.ended(7);
    await scene.lanes.group("audit").caughtUp({ signal: AbortSignal.timeout(10_000) });
    await awaitCondition(async () => (await scene.manager.streams.info(scene.stream)).state.messages === 0, {
      what: "the stream to be empty",
    });
    expect(scene.runs.filter(({ key }) => key === "a").map(({ seq }) => seq)).toEqual([1, 2, 2, 6]);
    await deleteConsumer(scene.manager, scene.stream, `lk-audit-g1-${laneOf("a", 4)}`);
    await run.told("rewound", undefined, 10_000);
    await scene.publish("a");
    await scene.ended(8);
  },
);

test("O4: work() and groups work when everything exists and the layout was written by another tool", async () => {
  await using scene = await openScene(server);
  const layout = { ...scene.lanes.layout, subject: "tool", lanes: 2 };
  const { subjects, metadata } = layoutConfig(layout);
  await scene.manager.streams.add({ name: "TOOL", subjects, metadata });
  const lanes = await openLanes(scene.connection, { stream: "TOOL" });
  expect(lanes.layout).toEqual(layout);
  await lanes.close();
});
