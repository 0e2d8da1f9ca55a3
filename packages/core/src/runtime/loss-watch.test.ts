import { expect, test } from "vitest";
import { MemoryConsumers, memoryStream, streamSnapshot } from "./group-consumers.test-support.js";
import { LossWatch } from "./loss-watch.js";
import type { StoredEvent } from "./stream-port.js";

const name = "lk-g-g1-0";

/** One lane, of which the stream holds the events 4 to 6. */
function scene() {
  const told: string[] = [];
  const port = new MemoryConsumers();
  const event = (seq: number): StoredEvent => ({
    seq,
    subject: "orders.0.k.t",
    id: undefined,
    storedAt: new Date(0),
  });
  const stream = {
    ...memoryStream(),
    nextMatching: async (_filter: string, from: number) => event(Math.max(from, 4)),
    lastMatching: async () => event(6),
  };
  const lanes = { read: async () => [port.kept.get(name)], filter: () => "orders.0.>" };
  const watch = new LossWatch(stream, lanes, ({ type, seq }) => told.push(`${type} ${seq}`));
  const look = (firstSeq: number, consumer: { ackFloor: number; deliveredSeq: number; pending: number }) => {
    port.put(name, consumer);
    return watch.look(streamSnapshot({ trims: true, firstSeq }));
  };
  return { told, look };
}

test("O4: the oldest event that waited is deleted unsettled: told once", async () => {
  const { told, look } = scene();
  await look(1, { ackFloor: 3, deliveredSeq: 3, pending: 3 });
  await look(7, { ackFloor: 3, deliveredSeq: 3, pending: 0 });
  await look(7, { ackFloor: 3, deliveredSeq: 3, pending: 0 });
  expect(told).toEqual(["lost 4"]);
});

test("O4: the oldest was still delivered while the others were deleted: the newest tells", async () => {
  const { told, look } = scene();
  await look(1, { ackFloor: 3, deliveredSeq: 3, pending: 3 });
  await look(7, { ackFloor: 4, deliveredSeq: 4, pending: 0 });
  expect(told).toEqual(["lost 6"]);
});

test("what was settled before it was deleted is not lost", async () => {
  const { told, look } = scene();
  await look(1, { ackFloor: 3, deliveredSeq: 3, pending: 3 });
  await look(7, { ackFloor: 6, deliveredSeq: 6, pending: 0 });
  expect(told).toEqual([]);
});
