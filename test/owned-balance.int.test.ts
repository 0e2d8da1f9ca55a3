import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { isBalanced } from "./harness/owned-scene.js";
import { openScene, type SceneWorker, type SceneWorkerOptions } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const owned: SceneWorkerOptions = { assignment: "owned", leaseMs: 6_000 };

test.each([16, 256])(
  "1, 2, 3, 5 and 8 workers on %i lanes settle balanced, and so do those that are left",
  { timeout: 240_000 },
  async (lanes) => {
    await using scene = await openScene(server, { create: { lanes } });
    const workers: SceneWorker[] = [];
    const settle = async (count: number): Promise<void> => {
      const shares = () => workers.map(({ worker }) => worker.lanes());
      await awaitCondition(() => isBalanced(shares(), lanes), {
        what: () =>
          `${count} workers to be balanced (now ${shares()
            .map((share) => share.length)
            .join(", ")})`,
        timeoutMs: 120_000,
      });
    };
    for (const count of [1, 2, 3, 5, 8]) {
      while (workers.length < count) workers.push(await scene.worker(async () => {}, owned));
      await settle(count);
    }
    for (const count of [5, 3, 2, 1]) {
      await Promise.all(workers.splice(count).map(({ worker }) => worker.close()));
      await settle(count);
    }
    const keys = Array.from({ length: lanes }, (_, n) => `key-${n}`);
    await scene.publish(...keys);
    await scene.ended(keys.length, 60_000);
    await scene.expectNoFaults();
  },
);

test("a worker for which no lane is left is healthy and has none (R32)", async () => {
  await using scene = await openScene(server, { create: { lanes: 1 } });
  const workers = [await scene.worker(async () => {}, owned), await scene.worker(async () => {}, owned)];
  await awaitCondition(() => workers.some(({ worker }) => worker.lanes().length === 1), {
    what: "the lane to be taken",
  });
  const idle = workers.filter(({ worker }) => worker.lanes().length === 0);
  expect(idle).toHaveLength(1);
  await awaitCondition(() => idle[0]?.worker.status().healthy, { what: "the idle worker to be healthy" });
  expect(idle[0]?.worker.status()).toMatchObject({ healthy: true, lanes: [] });
});
