import { RetryableError, TerminalError } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { laneOf } from "@lanekeeper/partitioner";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { openScene } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

test("R23, O1: A fails twice with a delay of its own: A, A, A, B, C, and other lanes are not held up", async () => {
  await using scene = await openScene(server);
  const run = await scene.worker(
    ({ key, data, attempt }) => {
      const { n } = data as { n: number };
      if (key === "K" && n === 0 && attempt < 3) throw new RetryableError("not yet", { retryAfterMs: 700 });
    },
    { retry: { attempts: 3, initialDelayMs: 60_000, maxDelayMs: 60_000 } },
  );
  const other = ["a", "b", "c", "d", "e"].find((key) => laneOf(key, 4) !== laneOf("K", 4)) ?? "a";
  await scene.publish("K", "K", "K", other);
  await scene.ended(6);
  const ofK = scene.runs.filter(({ key }) => key === "K");
  expect(ofK.map(({ seq, attempt }) => [seq, attempt])).toEqual([
    [1, 1],
    [1, 2],
    [1, 3],
    [2, 1],
    [3, 1],
  ]);
  for (const index of [1, 2]) {
    expect((ofK[index]?.startedAt ?? 0) - (ofK[index - 1]?.endedAt ?? 0)).toBeGreaterThanOrEqual(699);
  }
  const otherRun = scene.runs.find(({ key }) => key === other);
  expect(otherRun?.startedAt).toBeLessThan(ofK[2]?.startedAt ?? 0);
  expect(run.notifications.filter(({ type }) => type === "retry").map(({ error }) => error?.code)).toEqual([
    "RETRYABLE",
    "RETRYABLE",
  ]);
  await scene.expectNoFaults();
});

test("R24: a dependency down for 1.2 s costs attempts with doubling gaps, and nothing is given up", async () => {
  await using scene = await openScene(server);
  const upAt = performance.now() + 1_200;
  await scene.worker(
    () => {
      if (performance.now() < upAt) throw new Error("down");
    },
    { retry: { attempts: 5, initialDelayMs: 300, factor: 2, jitter: 0 }, onExhausted: "drop" },
  );
  await scene.publish("K");
  await awaitCondition(() => scene.runs.some(({ endedAt }) => (endedAt ?? 0) >= upAt), { what: "success" });
  const gaps = scene.runs.slice(1).map((run, index) => run.startedAt - (scene.runs[index]?.endedAt ?? 0));
  for (const [index, gap] of gaps.entries()) expect(gap).toBeGreaterThanOrEqual(300 * 2 ** index - 1);
  expect(scene.runs.length).toBeLessThanOrEqual(4);
});

test("a TerminalError skips the retries: with drop the key's next event runs at once", async () => {
  await using scene = await openScene(server);
  const run = await scene.worker(
    ({ seq }) => {
      if (seq === 1) throw new TerminalError("bad event");
    },
    { onExhausted: "drop" },
  );
  await scene.publish("K", "K");
  await scene.ended(2);
  expect(scene.runs.map(({ seq }) => seq)).toEqual([1, 2]);
  expect(await run.told("dropped")).toMatchObject({ seq: 1, key: "K", error: { code: "TERMINAL" } });
  expect(run.notifications.some(({ type }) => type === "retry")).toBe(false);
});

test("O3: with block an exhausted event is told once, tried on, holds its lane, shows in the group's status, and frees itself", async () => {
  await using scene = await openScene(server);
  let mended = false;
  const run = await scene.worker(
    ({ seq }) => {
      if (seq === 1 && !mended) throw new Error("down");
    },
    { retry: { attempts: 2, initialDelayMs: 10, maxDelayMs: 50, jitter: 0 } },
  );
  await scene.publish("K", "K");
  await run.told("blocked", ({ seq }) => seq === 1);
  await awaitCondition(() => scene.runs.length >= 5, { what: "the blocked event to be tried on" });
  expect(run.notifications.filter(({ type }) => type === "blocked")).toHaveLength(1);
  const group = scene.lanes.group("audit");
  // Asked again: a worker whose answer comes late is not in it.
  const listing = async () => {
    const status = await group.status();
    return status.blockedKeys.length > 0 && status;
  };
  expect(await awaitCondition(listing, { what: "the key to be listed as blocked" })).toMatchObject({
    blockedKeys: ["K"],
    inFlight: 1,
    pending: 1,
  });
  expect(new Set(scene.runs.map(({ seq }) => seq))).toEqual(new Set([1]));
  mended = true;
  await awaitCondition(() => scene.runs.some(({ seq, endedAt }) => seq === 2 && endedAt), {
    what: "the next event",
  });
  await scene.expectNoFaults();
});
