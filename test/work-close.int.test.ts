import { setTimeout as sleep } from "node:timers/promises";
import { LanekeeperError } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { laneOf } from "@lanekeeper/partitioner";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition, within } from "./harness/await-condition.js";
import { startNatsProxy } from "./harness/nats-proxy.js";
import { gate, openScene, type Scene } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** One key for every lane. */
function keyPerLane(lanes: number): string[] {
  const keys = new Map<number, string>();
  for (let n = 0; keys.size < lanes; n++) {
    const lane = laneOf(`k${n}`, lanes);
    if (!keys.has(lane)) keys.set(lane, `k${n}`);
  }
  return [...keys.values()];
}

async function leftOver(scene: Scene): Promise<{ inFlight: number; redelivered: number; pending: number }> {
  const consumers = await scene.consumers();
  const sum = (of: (info: (typeof consumers)[number]) => number) =>
    consumers.reduce((total, info) => total + of(info), 0);
  return {
    inFlight: sum((info) => info.num_ack_pending),
    redelivered: sum((info) => info.num_redelivered),
    pending: sum((info) => info.num_pending),
  };
}

test("R36: close with 8 busy lanes and a backlog finishes what is in hand: nothing in flight, nothing redelivered, the rest untouched", async () => {
  await using scene = await openScene(server, { create: { lanes: 8 } });
  const keys = keyPerLane(8);
  const busy = gate();
  const first = await scene.worker(() => busy.opened);
  await scene.publish(...keys, ...keys, ...keys);
  await awaitCondition(() => scene.runs.length === 8, { what: "8 busy lanes" });
  const closing = performance.now();
  const [one, other] = [first.worker.close(), first.worker.close()];
  expect(one).toBe(other);
  busy.open();
  await within(one, 20_000, "close");
  // The default grace is 25 s.
  expect(performance.now() - closing).toBeLessThan(20_000);
  expect(await first.worker.closed).toEqual({ type: "closed" });
  expect(scene.runs).toHaveLength(8);
  expect(await leftOver(scene)).toEqual({ inFlight: 0, redelivered: 0, pending: 16 });
  expect(first.worker.status()).toMatchObject({ healthy: false, lanes: [], inFlight: 0 });
  await scene.worker();
  await scene.ended(24);
  expect(scene.runs.every(({ attempt }) => attempt === 1)).toBe(true);
  await scene.expectNoFaults();
});

test("O3: events that wait for a slot or a retry at close are given back and come again at once, counted as deliveries", async () => {
  await using scene = await openScene(server, { create: { lanes: 8 } });
  const keys = keyPerLane(8);
  const hold = gate();
  const first = await scene.worker(() => hold.opened, { concurrency: 2, ackWaitMs: 30_000 });
  await scene.publish(...keys);
  await awaitCondition(() => first.worker.status().inFlight === 8 && scene.runs.length === 2, {
    what: "all lanes to hold an event, and two handlers to run",
  });
  const closed = first.worker.close();
  await awaitCondition(() => first.worker.status().inFlight === 2, { what: "what waits to be given back" });
  hold.open();
  await within(closed, 20_000, "close");
  expect(scene.runs).toHaveLength(2);
  await scene.worker();
  // Long before ackWait, after which they would come again anyway.
  await scene.ended(8, 20_000);
  await scene.expectNoFaults();
});

test("O6: nothing starts once close() was called, also while the server still has to hear of it", async () => {
  await using scene = await openScene(server, { create: { lanes: 8 } });
  await using proxy = await startNatsProxy(server.url);
  const keys = keyPerLane(8);
  const hold = gate();
  const first = await scene.worker(() => hold.opened, { concurrency: 2, servers: proxy.url });
  await scene.publish(...keys);
  await awaitCondition(() => first.worker.status().inFlight === 8 && scene.runs.length === 2, {
    what: "all lanes to hold an event, and two handlers to run",
  });
  // The answer to the end of its pulls comes long after the two have ended.
  proxy.delay("to-client", 500);
  const closed = first.worker.close();
  hold.open();
  await within(closed, 20_000, "close");
  expect(scene.runs).toHaveLength(2);
});

test("R37: a handler longer than the grace has its signal aborted with CLOSING, and close settles at grace + 0.5 s", async () => {
  await using scene = await openScene(server);
  const never = gate();
  let reason: unknown;
  const run = await scene.worker(
    async (_, { signal }) => {
      signal.addEventListener("abort", () => {
        reason = signal.reason;
      });
      await never.opened;
    },
    { ackWaitMs: 6_000 },
  );
  await scene.publish("K");
  await awaitCondition(() => scene.runs.length === 1, { what: "the handler" });
  const at = performance.now();
  await within(run.worker.close({ graceMs: 400 }), 15_000, "close");
  const took = performance.now() - at;
  expect(took).toBeGreaterThanOrEqual(390);
  expect(took).toBeLessThan(15_000);
  expect(LanekeeperError.is(reason) && reason.code).toBe("CLOSING");
  const second = await scene.worker(undefined, { ackWaitMs: 6_000 });
  await awaitCondition(() => scene.runs.length === 2, { what: "the event to come again" });
  expect(scene.runs[1]).toMatchObject({ seq: 1, attempt: 2 });
  await second.worker.close();
  never.open();
  await scene.ended(2);
});

test("R37: close awaited inside a handler settles within its grace, and the handler's end is still acked", async () => {
  await using scene = await openScene(server);
  let took = -1;
  const run: Awaited<ReturnType<Scene["worker"]>> = await scene.worker(async () => {
    const at = performance.now();
    await run.worker.close({ graceMs: 300 });
    took = performance.now() - at;
  });
  await scene.publish("K");
  await scene.ended(1, 15_000);
  expect(took).toBeLessThan(15_000);
  expect(await run.worker.closed).toEqual({ type: "closed" });
  // The handler ended right after close had, well inside its hold.
  await awaitCondition(async () => (await leftOver(scene)).inFlight === 0, { what: "the ack" });
  expect(await scene.consumer(laneOf("K", 4))).toMatchObject({ ack_floor: { stream_seq: 1 } });
});

test("R13, R37: a connection drained or closed under busy handlers breaks nothing: no unhandled rejection, the worker ends", async () => {
  const unhandled: unknown[] = [];
  const listener = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", listener);
  try {
    for (const end of ["drain", "close"] as const) {
      await using scene = await openScene(server);
      const hold = gate();
      const run = await scene.worker(async ({ key }) => {
        await hold.opened;
        await sleep(key.length * 2);
      });
      await scene.publish("K", "aaa", "bbbbb", "ccccccc", "dddd");
      await awaitCondition(() => scene.runs.length >= 3, { what: "handlers" });
      const ending = run.connection[end]();
      hold.open();
      await ending;
      await within(run.worker.closed, 15_000, "closed");
      await awaitCondition(() => scene.runs.every(({ endedAt }) => endedAt), { what: "handlers to end" });
    }
    await sleep(50);
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", listener);
  }
});

test.each(["killed", "frozen"])("R37: with the server %s close settles within grace + 0.5 s", async (how) => {
  await using own = await startTestServer();
  await using scene = await openScene(own);
  const hold = gate();
  const run = await scene.worker(() => hold.opened);
  await scene.publish("K", "a", "b", "c");
  await awaitCondition(() => scene.runs.length >= 2, { what: "handlers" });
  if (how === "killed") await own.kill();
  else own.freeze();
  const at = performance.now();
  const closed = run.worker.close({ graceMs: 1_000 });
  hold.open();
  await within(closed, 15_000, "close");
  expect(performance.now() - at).toBeLessThan(15_000);
  if (how === "frozen") own.thaw();
});

test("aborting the signal option closes the worker; an already aborted one closes it at once", async () => {
  await using scene = await openScene(server);
  const control = new AbortController();
  const run = await scene.worker(undefined, { signal: control.signal });
  await scene.publish("K");
  await scene.ended(1);
  control.abort();
  expect(await within(run.worker.closed, 15_000, "closed")).toEqual({ type: "closed" });
  const second = await scene.worker(undefined, { signal: AbortSignal.abort() });
  expect(await within(second.worker.closed, 15_000, "closed")).toEqual({ type: "closed" });
});

test("the connection closed by its owner ends the worker with connection-closed, and aborts what runs", async () => {
  await using scene = await openScene(server);
  const hold = gate();
  const reasons: unknown[] = [];
  const run = await scene.worker(async (_, { signal }) => {
    signal.addEventListener("abort", () => reasons.push(signal.reason));
    await hold.opened;
  });
  await scene.publish("K");
  await awaitCondition(() => scene.runs.length === 1, { what: "the handler" });
  await run.connection.close();
  expect(await within(run.worker.closed, 15_000, "closed")).toMatchObject({
    type: "connection-closed",
    error: { code: "CONNECTION_CLOSED" },
  });
  expect(run.worker.status()).toMatchObject({ healthy: false, error: { code: "CONNECTION_CLOSED" } });
  expect(reasons).toMatchObject([{ code: "FENCED" }]);
  hold.open();
});

test("lanes.close() closes its workers and publishers, never the connection; after it everything is refused with CLOSED", async () => {
  await using scene = await openScene(server);
  const run = await scene.worker();
  const publisher = run.lanes.publisher();
  await publisher.publish({ key: "K", type: "t", data: 1 });
  await within(run.lanes.close(), 15_000, "close");
  expect(await run.worker.closed).toEqual({ type: "closed" });
  expect(run.connection.isClosed()).toBe(false);
  await run.connection.flush();
  await expect(publisher.publish({ key: "K", type: "t", data: 1 })).rejects.toMatchObject({ code: "CLOSED" });
  expect(() => run.lanes.publisher()).toThrow(expect.objectContaining({ code: "CLOSED" }));
  await expect(run.lanes.work({ group: "g", assignment: "shared" }, () => {})).rejects.toMatchObject({
    code: "CLOSED",
  });
});
