import { setTimeout as sleep } from "node:timers/promises";
import { LanekeeperError, RetryableError } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { laneOf } from "@lanekeeper/partitioner";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { gate, openScene } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const quick = { attempts: 3, initialDelayMs: 10, maxDelayMs: 20, jitter: 0 };

const oddThrows: [string, () => unknown][] = [
  ["an Error thrown synchronously", () => new Error("sync")],
  ["undefined", () => undefined],
  ["null", () => null],
  ["a text", () => "x"],
  ["a frozen object", () => Object.freeze({ code: "E" })],
  [
    "an error whose message throws",
    () =>
      Object.defineProperty(new Error(), "message", {
        get() {
          throw new Error("from the getter");
        },
      }),
  ],
  [
    "a proxy that throws at every look",
    () =>
      new Proxy(
        {},
        {
          get() {
            throw new Error("get");
          },
          has() {
            throw new Error("has");
          },
          getPrototypeOf() {
            throw new Error("proto");
          },
        },
      ),
  ],
];

test.each(oddThrows)(
  "R13: a handler that fails with %s has its attempts, and the lane goes on",
  async (_, odd) => {
    const unhandled: unknown[] = [];
    const listener = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", listener);
    try {
      await using scene = await openScene(server);
      const run = await scene.worker(
        ({ data }) => {
          if ((data as { n: number }).n > 0) return;
          throw odd();
        },
        { retry: quick, onExhausted: "drop" },
      );
      await scene.publish("K", "K", "other");
      await scene.ended(5);
      expect(scene.runs.filter(({ key }) => key === "K").map(({ seq, attempt }) => [seq, attempt])).toEqual([
        [1, 1],
        [1, 2],
        [1, 3],
        [2, 1],
      ]);
      const dropped = await run.told("dropped");
      expect(dropped).toMatchObject({ key: "K", seq: 1, group: "audit" });
      expect(LanekeeperError.is(dropped.error) && dropped.error.code).toBe("HANDLER_FAILED");
      expect(run.notifications.filter(({ type }) => type === "retry")).toHaveLength(2);
      expect(run.worker.status()).toMatchObject({ healthy: true, inFlight: 0 });
      await sleep(0);
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", listener);
    }
  },
);

test("R15: a timed-out handler's signal fires, its run counts as failed though it resolves, and it is retried", async () => {
  await using scene = await openScene(server);
  const reasons: unknown[] = [];
  const run = await scene.worker(
    async (event, { signal }) => {
      if (event.attempt > 1) return;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      reasons.push(signal.reason);
    },
    { handlerTimeoutMs: 300, retry: quick },
  );
  // Before the handler can have been called; a timer may fire up to two milliseconds early.
  const before = performance.now();
  await scene.publish("K");
  await scene.ended(2);
  expect(reasons).toMatchObject([{ code: "HANDLER_TIMEOUT" }]);
  expect(scene.runs[0]?.endedAt).toBeGreaterThanOrEqual(before + 298);
  expect((await run.told("retry")).error).toMatchObject({ code: "HANDLER_TIMEOUT" });
});

test("R15, O2: a handler that ignores its signal holds its lane and nothing else, and is named", async () => {
  await using scene = await openScene(server);
  const stuck = gate();
  const run = await scene.worker(({ key }) => (key === "K" ? stuck.opened : undefined), {
    handlerTimeoutMs: 100,
    ackWaitMs: 2_000,
    retry: quick,
  });
  const other = ["a", "b", "c", "d", "e"].find((key) => laneOf(key, 4) !== laneOf("K", 4)) ?? "a";
  await scene.publish("K", other, "K");
  const told = await run.told("handler-stuck");
  expect(told).toMatchObject({ key: "K", seq: 1, error: { code: "HANDLER_STUCK" } });
  await awaitCondition(() => scene.runs.some(({ key, endedAt }) => key === other && endedAt), {
    what: "the other key to be handled",
  });
  await sleep(2_500); // Longer than ackWait: nobody may start the key again.
  expect(scene.runs.filter(({ key }) => key === "K")).toHaveLength(1);
  expect(run.worker.status().oldestHandler).toMatchObject({ key: "K", lane: laneOf("K", 4), seq: 1 });
  expect(run.worker.status().oldestHandler?.ageMs).toBeGreaterThan(2_000);
  stuck.open();
  await scene.ended(4);
  await scene.expectNoFaults();
});

test("R16, O2: a handler of four times ackWait runs once among two workers, and the next starts after its ack", {
  timeout: 90_000,
}, async () => {
  await using scene = await openScene(server);
  // Its hold bears two seconds in which this process or the server stands still; that of a second would bear 0.4.
  const ackWaitMs = 5_000;
  const handler = ({ seq }: { seq: number }) => (seq === 1 ? sleep(4.2 * ackWaitMs) : undefined);
  await scene.worker(handler, { ackWaitMs, name: "A" });
  await scene.worker(handler, { ackWaitMs, name: "B" });
  await scene.publish("K", "K");
  await scene.ended(2, 60_000);
  expect(scene.runs.map(({ seq, attempt }) => [seq, attempt])).toEqual([
    [1, 1],
    [2, 1],
  ]);
  await scene.expectNoFaults(ackWaitMs);
  const lane = scene.runs[0]?.lane ?? 0;
  await awaitCondition(async () => (await scene.consumer(lane)).num_ack_pending === 0, {
    what: "the last ack",
  });
  const { delivered, num_redelivered } = await scene.consumer(lane);
  expect({ delivered, num_redelivered }).toMatchObject({
    delivered: { consumer_seq: 2 },
    num_redelivered: 0,
  });
});

test("R22: 1,200 no-op events on one lane, more than two pulls' worth, without a gap of a second", async () => {
  await using scene = await openScene(server, { create: { lanes: 1 } });
  await scene.worker(() => {}, { concurrency: 4 });
  const publisher = scene.lanes.publisher();
  await Promise.all(
    Array.from({ length: 1_200 }, (_, n) => publisher.publish({ key: `k${n % 7}`, type: "t", data: n })),
  );
  await scene.ended(1_200);
  const gaps = scene.runs.slice(1).map((run, index) => run.startedAt - (scene.runs[index]?.startedAt ?? 0));
  // A second is what a quiet machine keeps; a pull that waits for its expiry would take 30.
  expect(Math.max(...gaps)).toBeLessThan(10_000);
  await scene.expectNoFaults();
});

test("concurrency caps handlers over all lanes, and a failed event that waits holds no slot", async () => {
  await using scene = await openScene(server, { create: { lanes: 16 } });
  await scene.publish(...Array.from({ length: 40 }, (_, n) => `k${n}`));
  let active = 0;
  let most = 0;
  const full = gate();
  await scene.worker(
    async ({ key, attempt }) => {
      most = Math.max(most, ++active);
      // The first ones wait for each other: however slow the machine, there are as many at once as there may be.
      if (active === 3) full.open();
      await full.opened;
      await sleep(20);
      active--;
      if (key === "k0" && attempt === 1) throw new RetryableError("later", { retryAfterMs: 600 });
    },
    { concurrency: 3 },
  );
  await scene.ended(41);
  expect(most).toBe(3);
  await scene.expectNoFaults();
});

test("fairness: one lane with a long backlog leaves the other lanes' few events their turn", async () => {
  await using scene = await openScene(server);
  const busy = Array.from({ length: 60 }, () => "K");
  const others = ["a", "b", "c", "d", "e", "f"].filter((key) => laneOf(key, 4) !== laneOf("K", 4));
  await scene.publish(...busy, ...others);
  await scene.worker(() => sleep(5), { concurrency: 1 });
  await scene.ended(busy.length + others.length);
  const lastOther = scene.runs.findLastIndex(({ key }) => key !== "K");
  expect(lastOther).toBeLessThan(scene.runs.length / 2);
});

test("an observer that throws is told of it once and breaks nothing", async () => {
  await using scene = await openScene(server);
  const told: string[] = [];
  await scene.worker(
    ({ attempt }) => {
      if (attempt < 3) throw new Error("again");
    },
    {
      retry: quick,
      onNotification: ({ type }) => {
        // A machine that stood still is told, too.
        if (type !== "loop-blocked") told.push(type);
        throw new Error("observer");
      },
    },
  );
  await scene.publish("K");
  await scene.ended(3);
  expect(told).toEqual(["retry", "observer-failed", "retry"]);
});

test("O6: deliveries whenever they arrive between two pings are handled in order; what comes again had been fenced", async () => {
  await using scene = await openScene(server);
  const ackWaitMs = 4_000;
  const run = await scene.worker(() => {}, { ackWaitMs });
  // Four times the half second between two pings.
  for (let n = 0; n < 30; n++) {
    await scene.publish("K");
    await sleep(70);
  }
  const handled = () => new Set(scene.runs.filter(({ endedAt }) => endedAt).map(({ seq }) => seq));
  await awaitCondition(() => handled().size === 30, {
    what: () => `30 events (so far ${handled().size})`,
    timeoutMs: 45_000,
  });
  // On a machine that stands still for two seconds a delivery may be let go; on no other.
  const fenced = run.notifications.filter(({ type }) => type === "fenced").map(({ seq }) => seq);
  const again = scene.runs.filter(({ attempt }) => attempt > 1).map(({ seq }) => seq);
  expect(fenced).toEqual(expect.arrayContaining(again));
  expect(scene.runs.filter(({ attempt }) => attempt === 1).length).toBeGreaterThan(15);
  await scene.expectNoFaults(ackWaitMs);
});
