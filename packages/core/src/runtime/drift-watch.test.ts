import { expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { DriftWatch } from "./drift-watch.js";
import { GroupConsumers, type GroupWish } from "./group-consumers.js";
import { countedIds, MemoryConsumers, memoryStream, streamSnapshot } from "./group-consumers.test-support.js";

const wish: GroupWish = { group: "g", assignment: "shared", start: "all", ackWaitMs: 30_000 };

async function scene(lanes: number) {
  const port = new MemoryConsumers();
  const layout = { subject: "o", generation: 1, lanes, hash: "murmur3", mapping: "publisher" } as const;
  const consumers = new GroupConsumers(layout, port, memoryStream(), countedIds());
  await consumers.ensure(wish, streamSnapshot());
  const failed: LanekeeperError[] = [];
  const watch = new DriftWatch(consumers, "g", lanes, (error) => void failed.push(error));
  const read: string[] = [];
  port.before = (request) => void read.push(request);
  return { port, failed, watch, read };
}

test.each([1, 2, 7])("R42: all of %i lanes are seen within two looks", async (lanes) => {
  const { read, watch } = await scene(lanes);
  await watch.look();
  await watch.look();
  expect(new Set(read).size).toBe(lanes);
});

test("looks are bounded: 64 of many lanes at a time, in turn", async () => {
  const { read, watch } = await scene(150);
  for (const seen of [64, 128, 150]) {
    await watch.look();
    expect(new Set(read).size).toBe(seen);
  }
});

test("O1, R42: a consumer that somebody changed is told with its difference", async () => {
  const { port, failed, watch } = await scene(3);
  await watch.look();
  await watch.look();
  expect(failed).toEqual([]);
  port.put("lk-g-g1-2", { differences: ["max_ack_pending is 1000"] });
  await watch.look();
  await watch.look();
  expect(failed).toMatchObject([
    { code: "CONSUMER_DIFFERS", message: expect.stringContaining("max_ack_pending is 1000") },
  ]);
});

test("consumers that are gone or cannot be read are nobody's drift", async () => {
  const { port, failed, watch } = await scene(1);
  port.before = () => {
    throw new LanekeeperError("REQUEST_TIMEOUT", "no leader");
  };
  await watch.look();
  port.before = () => {};
  port.kept.clear();
  await watch.look();
  expect(failed).toEqual([]);
});
