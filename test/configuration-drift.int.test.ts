import { setTimeout as sleep } from "node:timers/promises";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { laneOf } from "@lanekeeper/partitioner";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition, within } from "./harness/await-condition.js";
import { deleteConsumer } from "./harness/delete-consumer.js";
import { gate, openScene } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

test("R42, O2: a consumer changed under running workers ends them within two looks, with what differs; restored, workers start", async () => {
  await using scene = await openScene(server);
  const a = await scene.worker();
  const b = await scene.worker();
  await scene.publish("K");
  await scene.ended(1);
  const name = `lk-audit-g1-${laneOf("K", 4)}`;
  await scene.manager.consumers.update(scene.stream, name, { max_ack_pending: 1_000 });
  for (const { worker } of [a, b]) {
    const reason = await within(worker.closed, 30_000, "the worker to end");
    expect(reason).toMatchObject({ type: "failed", error: { code: "CONSUMER_DIFFERS" } });
    expect(worker.status()).toMatchObject({ healthy: false, error: { code: "CONSUMER_DIFFERS" } });
  }
  await scene.manager.consumers.update(scene.stream, name, { max_ack_pending: 1 });
  await scene.worker();
  await scene.publish("K");
  await scene.ended(2);
});

test("O1, O2: a lane's consumer deleted while a handler runs: in one worker the key waits for it, and the event comes again in order", async () => {
  await using scene = await openScene(server);
  const hold = gate();
  const aborted: unknown[] = [];
  const run = await scene.worker(async ({ seq, attempt }, { signal }) => {
    if (seq !== 1 || attempt > 1 || aborted.length > 0) return;
    signal.addEventListener("abort", () => aborted.push(signal.reason));
    await hold.opened;
  });
  await scene.publish("K", "K");
  await awaitCondition(() => scene.runs.length === 1, { what: "the first run" });
  await deleteConsumer(scene.manager, scene.stream, `lk-audit-g1-${laneOf("K", 4)}`);
  await run.told("rewound", undefined, 10_000);
  expect(aborted).toMatchObject([{ code: "FENCED" }]);
  await run.told("overlap-possible");
  await sleep(300);
  expect(scene.runs).toHaveLength(1);
  hold.open();
  await awaitCondition(() => scene.runs.some(({ seq, endedAt }) => seq === 2 && endedAt), {
    what: "the second event",
  });
  expect(scene.runs.map(({ seq }) => seq)).toEqual([1, 1, 2]);
  await scene.expectNoFaults();
});
