import { setTimeout as sleep } from "node:timers/promises";
import type { Notification } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { laneOf } from "@lanekeeper/partitioner";
import type { NatsConnection } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { ackVerbOf } from "./harness/jetstream-frames.js";
import { startNatsProxy } from "./harness/nats-proxy.js";
import { remakeStream } from "./harness/remake-stream.js";
import { gate, openScene } from "./work-scene.js";

const timeout = { timeout: 200_000 };
/** Ten seconds is what a worker keeps that its machine lets run. */
const SOON_MS = 25_000;

test(
  "O4: an ack that was lost on the way: the event comes again, is acked again, and its handler is not run again",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server);
    await using proxy = await startNatsProxy(server.url);
    const run = await scene.worker(undefined, { servers: proxy.url, ackWaitMs: 1_000 });
    const lost = proxy.intercept({
      direction: "to-server",
      match: (frame) => ackVerbOf(frame) === "+ACK",
      action: "drop",
      times: 2,
    });
    await scene.publish("K", "K");
    await lost.acted(2);
    await awaitCondition(() => scene.runs.some(({ seq, endedAt }) => seq === 2 && endedAt), {
      what: "the next event, which only the repeated ack lets through",
    });
    await awaitCondition(async () => (await scene.consumer(laneOf("K", 4))).ack_floor.stream_seq === 2, {
      what: "both to be settled",
    });
    expect(scene.runs.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(run.worker.status()).toMatchObject({ healthy: true, inFlight: 0 });
    await scene.expectNoFaults(1_000);
  },
);

test(
  "O6, O2: in-progress signals lost for longer than ackWait: the worker fences itself before the server redelivers, and says so",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server);
    await using proxy = await startNatsProxy(server.url);
    const aborted: unknown[] = [];
    let calls = 0;
    const run = await scene.worker(
      async (_event, { signal }) => {
        // Not by `attempt`: it counts a delivery, too, that was let go before anything ran.
        if (++calls > 1) return;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        aborted.push(signal.reason);
      },
      { servers: proxy.url, ackWaitMs: 2_000 },
    );
    proxy.intercept({
      direction: "to-server",
      match: (frame) => ackVerbOf(frame) === "+WPI",
      action: "drop",
    });
    await scene.publish("K");
    await scene.ended(2);
    expect(aborted).toMatchObject([{ code: "FENCED" }]);
    expect(await run.told("fenced")).toMatchObject({ key: "K", seq: 1, lane: laneOf("K", 4) });
    await run.told("overlap-possible");
    const [first, second] = scene.runs;
    expect(second?.startedAt).toBeGreaterThanOrEqual(first?.endedAt ?? Number.POSITIVE_INFINITY);
    await scene.expectNoFaults(2_000);
  },
);

test(
  "O1, O4: the server killed with -9 and started again under two busy workers: they go on by themselves, in order",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server);
    const a = await scene.worker(() => sleep(20), { ackWaitMs: 4_000 });
    const b = await scene.worker(() => sleep(20), { ackWaitMs: 4_000 });
    const events = Array.from({ length: 120 }, (_, n) => `k${n % 6}`);
    await scene.publish(...events);
    await awaitCondition(() => scene.runs.length >= 15, { what: "work to be under way" });
    await server.kill();
    await Promise.all([a, b].map((one) => one.told("unhealthy", undefined, SOON_MS)));
    expect(a.worker.status().error).toMatchObject({ code: "DISCONNECTED" });
    await server.restart();
    await Promise.all([a, b].map((one) => one.told("healthy", undefined, SOON_MS)));
    await awaitCondition(
      () => new Set(scene.runs.filter(({ endedAt }) => endedAt).map(({ seq }) => seq)).size === 120,
      { what: "every event to be handled", timeoutMs: 40_000 },
    );
    await scene.expectNoFaults(4_000);
  },
);

test(
  "a connection cut and back at once is not worth an unhealthy; one gone for 2 s is, and healthy follows",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server);
    await using proxy = await startNatsProxy(server.url);
    // Short, because a delivery into the dying connection waits it out.
    const run = await scene.worker(undefined, { servers: proxy.url, ackWaitMs: 3_000 });
    await scene.publish("K");
    await scene.ended(1);
    const awayMs = cutAndBack(run.connection);
    proxy.cut();
    await scene.publish("K");
    await scene.ended(2);
    // A machine that stalls can make more of it.
    if ((await awayMs) < 1_500)
      expect(run.notifications.filter(({ type }) => type === "unhealthy")).toEqual([]);
    await awaitCondition(() => run.worker.status().healthy, { what: "the worker to be healthy" });
    const before = run.notifications.length;
    const isNew = (one: Notification) => run.notifications.indexOf(one) >= before;
    proxy.refuse();
    proxy.cut();
    const told = await run.told("unhealthy", isNew, SOON_MS);
    expect(told.error).toMatchObject({ code: "DISCONNECTED" });
    expect(run.worker.status()).toMatchObject({ healthy: false, error: { code: "DISCONNECTED" } });
    proxy.admit();
    await run.told("healthy", isNew, SOON_MS);
    await scene.publish("K");
    await scene.ended(3);
    expect(run.worker.status().healthy).toBe(true);
    await scene.expectNoFaults();
  },
);

test(
  "R40: a server that is silent though connected is said to be within 10 s; once it answers the lanes go on",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server);
    await using proxy = await startNatsProxy(server.url);
    const run = await scene.worker(undefined, { servers: proxy.url });
    await scene.publish("K");
    await scene.ended(1);
    proxy.blackhole();
    const told = await run.told("unhealthy", undefined, SOON_MS);
    expect(told.error?.code).toMatch(/SERVER_UNRESPONSIVE|REQUEST_TIMEOUT/);
    await scene.publish("K", "x", "y");
    proxy.restore();
    await scene.ended(4, SOON_MS);
    await run.told("healthy", undefined, SOON_MS);
    await scene.expectNoFaults();
  },
);

test(
  "O5, O1: a delivery lost on its way to one of two workers holds its lane until it comes again; nothing overtakes it",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server, { create: { lanes: 1 } });
    await using proxy = await startNatsProxy(server.url);
    const lost = proxy.intercept({
      direction: "to-client",
      match: ({ reply, subject }) => reply.startsWith("$JS.ACK.") && subject.startsWith(scene.subject),
      action: "drop",
      skip: 2,
      times: 2,
    });
    await scene.worker(undefined, { servers: proxy.url, ackWaitMs: 1_000 });
    await scene.publish(...Array.from({ length: 10 }, (_, n) => `k${n % 2}`));
    await lost.acted(2);
    await scene.ended(10);
    expect(scene.runs.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    await scene.expectNoFaults(1_000);
  },
);

test(
  "R40: a worker that hears the server but nothing of its pulls says within 10 s that its lanes are silent",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server);
    await using proxy = await startNatsProxy(server.url);
    const run = await scene.worker(undefined, { servers: proxy.url });
    const lost = proxy.intercept({
      direction: "to-client",
      match: ({ op, subject, reply }) =>
        op === "HMSG" && (/^_INBOX\.[\w-]+\.\d+$/.test(subject) || reply.startsWith("$JS.ACK.")),
      action: "drop",
    });
    const told = await run.told("unhealthy", undefined, SOON_MS);
    expect(told.error).toMatchObject({ code: "SERVER_UNRESPONSIVE" });
    lost.remove();
    await run.told("healthy", undefined, SOON_MS);
    await scene.publish("a", "b");
    await scene.ended(2);
  },
);

test(
  "R12, O4: events that an age limit deletes behind a held lane are told as lost, while a worker runs and when one starts",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server, {
      create: { lanes: 1, streamConfig: { max_age: 9e9, duplicate_window: 9e9 } },
      publisher: { timeoutMs: 8_000 },
    });
    const hold = gate();
    const first = await scene.worker(() => hold.opened);
    await scene.publish("K", "K", "K");
    // 2.10 hands out the next event each time the one in hand expires, so that nothing may be lost while a worker looks.
    if (!server.version.startsWith("2.10.")) {
      const lost = () => first.notifications.find(({ type }) => type === "lost");
      const until = performance.now() + 60_000;
      await heard(lost, 15_000);
      // Where a tick of the server's clock fell between the events, it did as 2.10 does. These are stored at once.
      while (lost() === undefined && performance.now() < until) {
        await Promise.all(["a", "b", "c"].map((key) => scene.publish(key)));
        await heard(lost, 8_000);
      }
      expect(lost()).toMatchObject({ error: { code: "EVENT_LOST" }, lane: 0 });
    }
    hold.open();
    let left = await scene.publish("K");
    const isHandled = () => scene.runs.some(({ seq, endedAt }) => left.includes(seq) && endedAt);
    // On a machine that stalls one can expire, too, before its turn.
    for (let tries = 1; !(await heard(isHandled, 5_000)) && tries < 6; tries++)
      left = [...left, ...(await scene.publish("K"))];
    expect(isHandled()).toBe(true);
    await first.worker.close();
    await scene.publish("K", "K");
    await awaitCondition(async () => (await scene.manager.streams.info(scene.stream)).state.messages === 0, {
      what: "the stream to delete the events",
      timeoutMs: 30_000,
    });
    const second = await scene.worker();
    expect(await second.told("lost")).toMatchObject({ error: { code: "EVENT_LOST" } });
  },
);

test(
  "R40: the stream missing is said at once with its name, and a worker that outlives it goes on when it is back",
  timeout,
  async () => {
    await using server = await startTestServer();
    await using scene = await openScene(server);
    const run = await scene.worker();
    await scene.publish("a", "b");
    await scene.ended(2);
    const { config } = await scene.manager.streams.info(scene.stream);
    await scene.manager.streams.delete(scene.stream);
    await awaitCondition(() => run.worker.status().error?.code === "STREAM_NOT_FOUND", {
      what: "status to say that the stream is missing",
      timeoutMs: SOON_MS,
    });
    await sleep(3_000);
    expect(run.worker.status().healthy).toBe(false);
    await remakeStream(scene.manager, config);
    await run.told("healthy", undefined, SOON_MS);
    await scene.publish("a", "b", "c");
    await scene.ended(5);
  },
);

test("LOOP_BLOCKED: a handler that blocks the event loop is told, with how long", timeout, async () => {
  await using server = await startTestServer();
  await using scene = await openScene(server);
  const run = await scene.worker(({ attempt }) => {
    const until = performance.now() + (attempt === 1 ? 1_800 : 0);
    while (performance.now() < until);
  });
  await scene.publish("K");
  const told = await run.told("loop-blocked");
  expect(told.error).toMatchObject({ code: "LOOP_BLOCKED" });
  expect(run.worker.status().eventLoopLagMs).toBeGreaterThan(100);
  await scene.ended(1);
});

/** For how long the connection is away when it is lost next, milliseconds. */
async function cutAndBack(connection: NatsConnection): Promise<number> {
  let cutAt = 0;
  for await (const { type } of connection.status()) {
    if (type === "disconnect") cutAt = performance.now();
    if (type === "reconnect") break;
  }
  return performance.now() - cutAt;
}

/** Whether it comes to hold within that time. */
async function heard(ask: () => unknown, timeoutMs: number): Promise<boolean> {
  const until = performance.now() + timeoutMs;
  while (!ask() && performance.now() < until) await sleep(20);
  return Boolean(ask());
}
