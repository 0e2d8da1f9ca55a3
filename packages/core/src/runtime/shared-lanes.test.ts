import { expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { GroupConsumers, type GroupWish } from "./group-consumers.js";
import { countedIds, MemoryConsumers, memoryStream, streamSnapshot } from "./group-consumers.test-support.js";
import { Health } from "./health.js";
import { LaneScene } from "./lane-host.test-support.js";
import type { LaneRunner } from "./lane-runner.js";
import type { WorkerHost } from "./lane-set.js";
import type { LanesContext } from "./lanes-context.js";
import { SharedLanes } from "./shared-lanes.js";

const layout = { subject: "orders", generation: 1, lanes: 1, hash: "murmur3", mapping: "publisher" } as const;
const wish: GroupWish = { group: "g", assignment: "shared", start: "all", ackWaitMs: 10_000 };

/** The one lane of a shared worker that has settled event 1 and runs event 2 of another key, verified. */
async function scene({ keepsConsumers = true } = {}) {
  const lane = new LaneScene();
  const port = new MemoryConsumers();
  const stream = memoryStream();
  const consumers = new GroupConsumers(layout, port, stream, countedIds());
  const group = await consumers.ensure(wish, streamSnapshot());
  const connection = { serverId: "first", keepsConsumers, observe: () => () => {} };
  const context = {
    connection,
    streamPort: stream,
    watch: { look: async () => ({ type: "ok", snapshot: streamSnapshot() }) },
  } as unknown as LanesContext;
  const host: WorkerHost = {
    ...lane.host,
    health: new Health(lane.clock, () => {}),
    proof: () => lane.proof(),
    fail: () => {},
  };
  const { created } = streamSnapshot();
  const lanes = new SharedLanes({ context, consumers, wish, group, created }, host);
  const [runner] = lanes.runners as [LaneRunner];
  await lane.settle();
  lane.deliver(1, "settled", {}, runner);
  await lane.settle();
  await lane.end();
  lane.deliver(2, "running", {}, runner);
  await lane.settle();
  expect(lane.feed.sent).toEqual(["ack 1"]);
  const silence = () => {
    port.before = () => {
      throw new LanekeeperError("REQUEST_TIMEOUT", "no leader yet");
    };
  };
  const speak = async () => {
    port.before = () => {};
    await lane.clock.advance(300);
  };
  const comeBackTo = (serverId: string) => {
    connection.serverId = serverId;
    lanes.reconnected();
  };
  await lane.clock.advance(10);
  /** What a server process that was started again knows of the lane. */
  const remembers = (deliveredSeq: number, deliversAgain: boolean) =>
    port.put("lk-g-g1-0", { deliveredSeq, deliversAgain });
  remembers(2, false);
  return { lane, lanes, runner, silence, speak, comeBackTo, remembers };
}

test("back at the same server process, the newest answer is sent again: it may have been lost", async () => {
  const { lane, comeBackTo } = await scene();
  comeBackTo("first");
  await lane.settle();
  expect(lane.feed.sent).toEqual(["ack 1", "ack 1"]);
  expect(lane.told).toEqual([]);
});

test.each([
  ["has delivered since", 2, true],
  ["has forgotten a delivery", 1, false],
])(
  "O2: to a server process that was started again and %s it is not; what runs is let go of, and told as a possible overlap",
  async (_, deliveredSeq, deliversAgain) => {
    const { lane, comeBackTo, remembers } = await scene();
    remembers(deliveredSeq, deliversAgain);
    comeBackTo("second");
    await lane.settle();
    expect(lane.told[0]).toMatchObject({
      type: "overlap-possible",
      key: "running",
      seq: 2,
      error: { code: "FENCED" },
    });
    expect(lane.types()).toContain("fenced");
    expect(lane.last().signal.aborted).toBe(true);
    await lane.end();
    expect(lane.feed.sent).toEqual(["ack 1"]);
  },
);

test("to one that has forgotten nothing it is, since an answer may have been lost; what runs goes on, told as a possible overlap", async () => {
  const { lane, comeBackTo } = await scene();
  comeBackTo("second");
  await lane.settle();
  expect(lane.types()).toEqual(["overlap-possible"]);
  await lane.end();
  expect(lane.feed.sent).toEqual(["ack 1", "ack 1", "ack 2"]);
});

test("another server of a cluster has its consumers' state from its peers: no overlap is told", async () => {
  const { lane, comeBackTo } = await scene({ keepsConsumers: false });
  comeBackTo("second");
  await lane.settle();
  expect(lane.feed.sent).toEqual(["ack 1"]);
  expect(lane.told).toEqual([]);
});

test("O2: nothing starts and nothing is answered before the consumers are verified", async () => {
  const { lane, runner, silence, speak, comeBackTo } = await scene();
  silence();
  comeBackTo("second");
  await lane.clock.advance(1);
  lane.deliver(3, "new", {}, runner);
  await lane.end();
  await lane.clock.advance(2_000);
  expect(lane.runs.map(({ seq }) => seq)).toEqual([1, 2]);
  expect(lane.feed.sent).toEqual(["ack 1"]);
  await speak();
  // The newest answer is the one that was kept back; sent twice it does no harm.
  expect(new Set(lane.feed.sent)).toEqual(new Set(["ack 1", "ack 2"]));
  expect(lane.runs.map(({ seq }) => seq)).toEqual([1, 2, 3]);
});

test.each([
  ["the same, then another", ["first", "second"]],
  ["another, then that one again", ["second", "second"]],
])(
  "O2: connections that follow each other before one is verified (%s): not sent again",
  async (_, servers) => {
    const { lane, silence, speak, comeBackTo, remembers } = await scene();
    remembers(2, true);
    silence();
    for (const serverId of servers) {
      comeBackTo(serverId);
      await lane.clock.advance(50);
    }
    await speak();
    expect(lane.feed.sent).toEqual(["ack 1"]);
  },
);

test("once verified at another server process, that one is the same from then on", async () => {
  const { lane, comeBackTo, remembers } = await scene();
  comeBackTo("second");
  await lane.settle();
  await lane.end();
  expect(lane.feed.sent).toEqual(["ack 1", "ack 1", "ack 2"]);
  // Whatever it has delivered since, it is the one that the answers went to.
  remembers(2, true);
  comeBackTo("second");
  await lane.settle();
  expect(lane.feed.sent).toEqual(["ack 1", "ack 1", "ack 2", "ack 2"]);
});

test("O3: given back: pulls end first, then answers go out, confirmed", async () => {
  const { lane, lanes } = await scene();
  const given = lanes.giveBack(1_000);
  await lane.settle();
  await lane.end();
  await given;
  expect(lane.feed.sent).toEqual(["ack 1", "ack 2 confirmed"]);
});

test("O2: given back while the consumers are not verified: nothing is released or acked before they are", async () => {
  const { lane, lanes, runner, silence, speak, comeBackTo } = await scene();
  silence();
  comeBackTo("first");
  lane.deliver(3, "new", {}, runner);
  // As close() does before it gives back.
  lane.slots.pause("closing");
  const given = lanes.giveBack(1_000);
  await lane.settle();
  await lane.end();
  await lane.clock.advance(1_000);
  expect(lane.feed.sent).toEqual(["ack 1"]);
  await speak();
  await given;
  expect(lane.feed.sent.slice(1).sort()).toEqual(["ack 2 confirmed", "release 3 after 0"]);
});

test("O2: the connection is lost and comes back while handlers end in the grace of close(): acks wait for the verification", async () => {
  const { lane, lanes, silence, speak, comeBackTo } = await scene();
  let isGiven = false;
  const given = lanes.giveBack(1_000).then(() => {
    isGiven = true;
  });
  await lane.settle();
  silence();
  comeBackTo("first");
  await lane.end();
  await lane.clock.advance(1_000);
  expect([isGiven, ...lane.feed.sent]).toEqual([false, "ack 1"]);
  await speak();
  await given;
  expect(lane.feed.sent).toContain("ack 2 confirmed");
});

test("ended, it has no lanes, and verification stops asking", async () => {
  const { lane, lanes, silence, comeBackTo } = await scene();
  silence();
  comeBackTo("first");
  await lanes.end();
  await lane.clock.advance(1_000);
  expect(lanes.lanes()).toEqual([]);
  expect(lane.clock.timers).toBe(0);
});
