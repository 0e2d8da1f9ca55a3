import type { LaneLayout } from "@lanekeeper/partitioner";
import { expect, test } from "vitest";
import type { ClaimRecord } from "../domain/claim-record.js";
import { MemoryConsumers, memoryStream, streamSnapshot } from "./group-consumers.test-support.js";
import { LaneTakeover } from "./lane-takeover.js";

const layout: LaneLayout = {
  subject: "orders",
  generation: 1,
  lanes: 2,
  hash: "murmur3",
  mapping: "publisher",
};
const { created } = streamSnapshot();
/** Lane 0 was given back in good order after seven deliveries. */
const given: ClaimRecord = {
  version: 1,
  incarnation: `${created}/i`,
  owner: "me",
  nonce: "n",
  epoch: 9,
  consumer: "lk-g-g1-0-e4",
  consumerEpoch: 4,
  startSeq: 1,
  deaths: [],
  cleanAt: 7,
};

function scene(settings: { ackWaitMs: number; maxAckPending: number }) {
  const consumers = new MemoryConsumers();
  consumers.put("lk-g-g1-0-e4", { group: "g", deliveries: 7, deliveredSeq: 12, ackFloor: 12, ...settings });
  const takeover = new LaneTakeover({
    layout,
    group: "g",
    consumers,
    stream: memoryStream(),
    ackWaitMs: 30_000,
    maxAckPending: 16,
    retention: "limits",
    current: () => ({ created, incarnation: `${created}/i`, startSeq: 1, from: undefined }),
  });
  const takeUp = async () => {
    const base = await takeover.inspect(0, given);
    expect(base).toMatchObject({ adopted: true, deliveries: 7, consumer: { consumer: "lk-g-g1-0-e4" } });
    await takeover.prepare(0, given, base, async () => {});
    return consumers.did;
  };
  return { takeUp };
}

test("R32: a lane given back in good order is taken up without a change of its consumer, if that fits already", async () => {
  expect(await scene({ ackWaitMs: 30_000, maxAckPending: 16 }).takeUp()).toEqual([]);
});

test.each([
  { ackWaitMs: 10_000, maxAckPending: 16 },
  { ackWaitMs: 30_000, maxAckPending: 1 },
])("R42: a lane's new owner applies its own settings to a consumer made with %o", async (settings) => {
  expect(await scene(settings).takeUp()).toEqual(["ackWait lk-g-g1-0-e4 30000"]);
});
