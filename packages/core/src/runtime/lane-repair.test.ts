import { describe, expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { GroupConsumers, type GroupWish } from "./group-consumers.js";
import { MemoryConsumers, memoryStream, streamSnapshot } from "./group-consumers.test-support.js";
import { Health } from "./health.js";
import { LaneScene } from "./lane-host.test-support.js";
import { LaneRepair } from "./lane-repair.js";
import type { LanesContext } from "./lanes-context.js";
import type { StreamPort } from "./stream-port.js";
import type { StreamState } from "./stream-watch.js";

const layout = { subject: "orders", generation: 1, lanes: 1, hash: "murmur3", mapping: "publisher" } as const;
const name = "lk-g-g1-0";
const wish: GroupWish = { group: "g", assignment: "shared", start: "new", ackWaitMs: 10_000 };

let ids = 0;

/** One lane with its runner, a group of one consumer, and the repair between them. */
async function scene(stream: StreamPort = memoryStream()) {
  const lane = new LaneScene({ retry: { attempts: 1, initialDelayMs: 1_000, jitter: 0 } });
  const port = new MemoryConsumers();
  const consumers = new GroupConsumers(layout, port, stream, () => `id-${++ids}`);
  const group = await consumers.ensure(wish, streamSnapshot());
  const told: string[] = [];
  const failed: LanekeeperError[] = [];
  const health = new Health(lane.clock, ({ type }) => told.push(type));
  const state: { now: StreamState } = { now: { type: "ok", snapshot: streamSnapshot() } };
  const context = { streamPort: stream, watch: { look: async () => state.now } } as unknown as LanesContext;
  const repair = new LaneRepair({
    context,
    consumers,
    wish,
    group,
    created: streamSnapshot().created,
    runners: [lane.runner],
    policies: [lane.policy],
    health,
    notify: ({ type, seq }) => told.push(`${type} ${seq}`),
    fail: (error) => failed.push(error),
  });
  port.did.length = 0;
  return { lane, port, group, told, failed, health, state, repair };
}

test("R40: a deleted consumer is made again where the lane stood; what was in hand is fenced first", async () => {
  const { lane, port, told, repair } = await scene();
  lane.deliver(60);
  await lane.settle();
  port.kept.delete(name);
  repair.trouble(lane.runner, "consumer-deleted", "Consumer Deleted");
  expect(lane.last().signal.aborted).toBe(true);
  await lane.settle();
  expect(port.did).toEqual([`create ${name} from 60`]);
  expect(told).toEqual(["rewound 60"]);
  await lane.end();
  expect(lane.feed.sent).toEqual([]);
});

test("trouble of a consumer that is still there makes nothing, and is told when it lasts", async () => {
  const { lane, port, told, health, repair } = await scene();
  repair.trouble(lane.runner, "no-responders", "");
  repair.trouble(lane.runner, "no-responders", "");
  await lane.clock.advance(2_999);
  expect(told).toEqual([]);
  await lane.clock.advance(1);
  expect(told).toEqual(["unhealthy"]);
  expect(health.error?.code).toBe("JETSTREAM_UNAVAILABLE");
  expect(port.did).toEqual([]);
});

test("a consumer is not made again on a stream that is missing, at fault or another one", async () => {
  const { lane, port, state, repair } = await scene();
  port.kept.delete(name);
  const error = new LanekeeperError("LAYOUT_DIFFERS", "x");
  const states: StreamState[] = [
    { type: "missing", error },
    { type: "unreadable", error },
    { type: "layout-fault", error, snapshot: streamSnapshot() },
    { type: "ok", snapshot: streamSnapshot({ created: "2026-02-02T00:00:00Z" }) },
  ];
  for (const one of states) {
    state.now = one;
    repair.trouble(lane.runner, "no-responders", "");
    await lane.settle();
  }
  expect(port.did).toEqual([]);
});

test("O4: a stream made anew is worked from its first event, under a new incarnation, with nothing remembered", async () => {
  const { lane, port, group, told, repair } = await scene();
  lane.deliver(3);
  await lane.settle();
  await lane.end();
  port.kept.clear();
  await repair.streamSeen(streamSnapshot({ created: "2026-02-02T00:00:00Z", lastSeq: 4 }));
  expect(port.did).toEqual([`create ${name} from 1`]);
  expect(repair.group.incarnation).not.toBe(group.incarnation);
  expect(told).toEqual(["rewound 1"]);
  lane.deliver(3);
  await lane.settle();
  expect(lane.runs).toHaveLength(2);
  await repair.streamSeen(streamSnapshot({ created: "2026-02-02T00:00:00Z", lastSeq: 4 }));
  expect(told).toEqual(["rewound 1"]);
});

test("what fails meanwhile is tried again with the next look; what cannot mend itself ends the worker", async () => {
  const { lane, port, failed, health, repair } = await scene();
  const anew = streamSnapshot({ created: "2026-02-02T00:00:00Z" });
  port.kept.clear();
  port.before = () => {
    throw new LanekeeperError("REQUEST_TIMEOUT", "slow");
  };
  await repair.streamSeen(anew);
  await lane.clock.advance(3_000);
  expect(health.error?.code).toBe("REQUEST_TIMEOUT");
  port.before = () => {};
  await repair.streamSeen(anew);
  expect(health.error).toBeUndefined();
  port.put(name, { differences: ["max_ack_pending is 1000"] });
  await repair.streamSeen(streamSnapshot({ created: "2026-03-03T00:00:00Z" }));
  expect(failed.map(({ code }) => code)).toEqual(["CONSUMER_DIFFERS"]);
});

test("stopped, it looks at nothing any more", async () => {
  const { lane, port, repair } = await scene();
  port.kept.delete(name);
  repair.stop();
  repair.trouble(lane.runner, "no-responders", "");
  await lane.settle();
  expect(port.did).toEqual([]);
});

test("another leader is no trouble: the next pull goes to it", async () => {
  const { lane, port, told, repair } = await scene();
  port.kept.delete(name);
  repair.trouble(lane.runner, "leader-changed", "Leadership Change");
  await lane.clock.advance(10_000);
  expect(port.did).toEqual([]);
  expect(told).toEqual([]);
});

describe("verify, after every connection", () => {
  test("O4: a group that was rewound meanwhile is worked from where the rewind says, with nothing remembered", async () => {
    const { lane, port, told, repair } = await scene();
    lane.deliver(3);
    await lane.settle();
    await lane.end();
    lane.deliver(4);
    await lane.settle();
    port.put(name, { incarnation: "2026-01-01T00:00:00Z/rewound", groupStartSeq: 3, startSeq: 3 });
    await repair.verify();
    expect(lane.last().signal.reason).toMatchObject({ code: "FENCED" });
    expect(repair.group.incarnation).toBe("2026-01-01T00:00:00Z/rewound");
    expect(told).toEqual(["rewound 3"]);
    await lane.end();
    expect(lane.feed.sent).toEqual(["ack 3"]);
    lane.deliver(3);
    await lane.settle();
    expect(lane.runs.map(({ seq }) => seq)).toEqual([3, 4, 3]);
  });

  test("O2: a shorter ackWait makes the holds shorter, for what comes next", async () => {
    const { lane, port, told, repair } = await scene();
    lane.feed.confirms = false;
    port.put(name, { ackWaitMs: 1_000 });
    await repair.verify();
    lane.deliver(60);
    await lane.settle();
    await lane.clock.advance(700);
    lane.tick();
    expect(lane.types()).toEqual(["fenced", "overlap-possible"]);
    expect(told).toEqual([]);
  });

  test("nothing changed: nothing in hand is touched, nothing is made", async () => {
    const { lane, port, group, told, repair } = await scene();
    lane.deliver(60);
    await lane.settle();
    await repair.verify();
    expect(lane.last().signal.aborted).toBe(false);
    expect(repair.group).toBe(group);
    expect(told).toEqual([]);
    expect(port.did).toEqual([]);
  });

  describe("O2: back at a server process that was started anew", () => {
    const found = (change: { deliveredSeq: number; deliversAgain: boolean }) => async () => {
      const { lane, port, repair } = await scene();
      lane.deliver(60);
      await lane.settle();
      await lane.clock.advance(1_000);
      port.put(name, change);
      return { lane, repair, restartedAt: lane.clock.now() };
    };

    test.each([
      ["it has forgotten our delivery", { deliveredSeq: 59, deliversAgain: false }],
      ["it has delivered since, maybe the same event", { deliveredSeq: 60, deliversAgain: true }],
    ])("what is in hand is let go of when %s", async (_, change) => {
      const { lane, repair, restartedAt } = await found(change)();
      expect((await repair.verify(restartedAt)).size).toBe(0);
      expect(lane.last().signal.reason).toMatchObject({ code: "FENCED" });
      expect(lane.told.at(-1)).toMatchObject({ type: "overlap-possible", seq: 60 });
      expect(lane.told.at(-1)?.error?.message).toContain("started again");
      await lane.end();
      expect(lane.feed.sent).toEqual([]);
    });

    test("it stays ours when the server still counts it and has delivered nothing since", async () => {
      const { lane, repair, restartedAt } = await found({ deliveredSeq: 60, deliversAgain: false })();
      expect([...(await repair.verify(restartedAt))]).toEqual([lane.runner]);
      await lane.end();
      expect(lane.feed.sent).toEqual(["ack 60"]);
    });

    test("it stays ours when it was delivered to us again", async () => {
      const { lane, repair, restartedAt } = await found({ deliveredSeq: 60, deliversAgain: true })();
      await lane.clock.advance(1);
      lane.deliver(60);
      await repair.verify(restartedAt);
      await lane.end();
      expect(lane.feed.sent).toEqual(["ack 60"]);
    });

    test("at the same process nothing is let go of", async () => {
      const { lane, repair } = await found({ deliveredSeq: 60, deliversAgain: true })();
      await repair.verify();
      await lane.end();
      expect(lane.feed.sent).toEqual(["ack 60"]);
    });
  });

  test("a consumer that was deleted and made again while the worker looked on is the one it knows from then on", async () => {
    const { lane, port, repair } = await scene();
    // By another worker, which was faster.
    repair.trouble(lane.runner, "consumer-deleted", "Consumer Deleted");
    port.put(name, { created: Date.UTC(2026, 0, 2) });
    await lane.settle();
    lane.deliver(60);
    await lane.settle();
    await repair.verify();
    await repair.verify();
    expect(lane.last().signal.aborted).toBe(false);
    await lane.end();
    expect(lane.feed.sent).toEqual(["ack 60"]);
  });

  test("O6: a consumer of the same name and incarnation that was made anew meanwhile gets no answer of before", async () => {
    const { lane, port, repair } = await scene();
    lane.deliver(60);
    await lane.settle();
    port.put(name, { created: Date.UTC(2026, 0, 1, 0, 0, 9) });
    await repair.verify();
    expect(lane.last().signal.reason).toMatchObject({ code: "FENCED" });
    await lane.end();
    expect(lane.feed.sent).toEqual([]);
    await repair.verify();
    lane.deliver(61);
    await lane.settle();
    await repair.verify();
    await lane.end();
    expect(lane.feed.sent).toEqual(["ack 61"]);
  });

  test("a consumer that is missing is no rewind: its own trouble makes it again", async () => {
    const { port, group, repair } = await scene();
    port.kept.delete(name);
    await repair.verify();
    expect(repair.group).toBe(group);
    expect(port.did).toEqual([]);
  });

  test("rejects when it cannot be told: consumers do not answer, or a rewound group's stream cannot be read", async () => {
    const { port, group, state, repair } = await scene();
    port.before = () => {
      throw new LanekeeperError("REQUEST_TIMEOUT", "no leader");
    };
    await expect(repair.verify()).rejects.toMatchObject({ code: "REQUEST_TIMEOUT" });
    port.before = () => {};
    port.put(name, { incarnation: "2026-01-01T00:00:00Z/rewound" });
    state.now = { type: "unreadable", error: new LanekeeperError("JETSTREAM_UNAVAILABLE", "election") };
    await expect(repair.verify()).rejects.toMatchObject({ code: "JETSTREAM_UNAVAILABLE" });
    expect(repair.group).toBe(group);
  });
});
