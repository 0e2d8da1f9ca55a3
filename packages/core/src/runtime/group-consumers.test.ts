import { describe, expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { GroupConsumers, type GroupWish } from "./group-consumers.js";
import { countedIds, MemoryConsumers, memoryStream, streamSnapshot } from "./group-consumers.test-support.js";
import type { LaneView } from "./lane-view.js";
import type { StreamSnapshot } from "./stream-port.js";

const layout = { subject: "o", generation: 1, lanes: 3, hash: "murmur3", mapping: "publisher" } as const;

function scene() {
  const port = new MemoryConsumers();
  return { port, consumers: new GroupConsumers(layout, port, memoryStream(), countedIds()) };
}

const wish = (change: Partial<GroupWish> = {}): GroupWish => ({
  group: "g",
  assignment: "shared",
  start: "all",
  ackWaitMs: 30_000,
  ...change,
});

describe("a new group", () => {
  test("gets one durable per lane, lane 0 first, all from one start and of one incarnation", async () => {
    const { port, consumers } = scene();
    const group = await consumers.ensure(wish({ start: "new" }), streamSnapshot());
    expect(group).toMatchObject({ created: true, startSeq: 51 });
    expect(group.incarnation).toMatch(/^2026-01-01T00:00:00Z\//);
    expect(port.did[0]).toBe("create lk-g-g1-0 from 51");
    expect([...port.did].sort()).toEqual([0, 1, 2].map((lane) => `create lk-g-g1-${lane} from 51`));
    expect(group.lanes.map(({ incarnation }) => incarnation)).toEqual(Array(3).fill(group.incarnation));
  });

  test.each([
    ["all", 1],
    [{ startSeq: 7 }, 7],
    [{ startTime: new Date(0) }, 20],
  ] as const)("deliverPolicy %j starts at %i", async (start, seq) => {
    const { consumers } = scene();
    expect((await consumers.ensure(wish({ start }), streamSnapshot())).startSeq).toBe(seq);
  });

  test("O4: a work queue is always read from its start, and refuses another", async () => {
    const { port, consumers } = scene();
    const snapshot = streamSnapshot({ retention: "workqueue" });
    await expect(consumers.ensure(wish({ start: "new" }), snapshot)).rejects.toMatchObject({
      code: "INVALID_OPTIONS",
    });
    expect(port.did).toEqual([]);
  });

  test("two workers that start at the same moment agree on start and incarnation", async () => {
    const { port, consumers } = scene();
    const other = new GroupConsumers(layout, port, memoryStream(), () => "other");
    const [one, two] = await Promise.all([
      consumers.ensure(wish({ start: "new" }), streamSnapshot({ lastSeq: 50 })),
      other.ensure(wish({ start: "new" }), streamSnapshot({ lastSeq: 60 })),
    ]);
    expect(two.incarnation).toBe(one.incarnation);
    expect(two.startSeq).toBe(one.startSeq);
    expect(new Set([...port.kept.values()].map(({ groupStartSeq }) => groupStartSeq)).size).toBe(1);
  });
});

describe("a group that exists", () => {
  test("keeps its start: deliverPolicy is ignored; nothing is made or changed", async () => {
    const { port, consumers } = scene();
    const first = await consumers.ensure(wish({ start: { startSeq: 5 } }), streamSnapshot());
    port.did.length = 0;
    const again = await consumers.ensure(wish({ start: "new" }), streamSnapshot());
    expect(again).toMatchObject({ created: false, startSeq: 5, incarnation: first.incarnation });
    expect(port.did).toEqual([]);
  });

  test("R42: a consumer that does not fit is refused by name and difference, before anything is touched", async () => {
    const { port, consumers } = scene();
    port.put("lk-g-g1-1", { differences: ["max_ack_pending is 1000 where a lane needs 1"] });
    await expect(consumers.ensure(wish(), streamSnapshot())).rejects.toMatchObject({
      code: "CONSUMER_DIFFERS",
      message: expect.stringContaining("lk-g-g1-1: max_ack_pending is 1000"),
    });
    expect(port.did).toEqual([]);
  });

  test("a lane whose consumer was lost is made again, of the group's incarnation", async () => {
    const { port, consumers } = scene();
    const { incarnation } = await consumers.ensure(wish({ start: { startSeq: 5 } }), streamSnapshot());
    port.kept.delete("lk-g-g1-2");
    await consumers.ensure(wish(), streamSnapshot());
    expect(port.did.at(-1)).toBe("create lk-g-g1-2 from 5");
    expect(port.kept.get("lk-g-g1-2")).toMatchObject({ incarnation });
  });

  test("remake goes on where the lane stood; a work queue from its start", async () => {
    const { port, consumers } = scene();
    const group = await consumers.ensure(wish(), streamSnapshot());
    port.kept.delete("lk-g-g1-1");
    await consumers.remake(wish(), 1, group, 33, streamSnapshot());
    expect(port.did.at(-1)).toBe("create lk-g-g1-1 from 33");
    expect(port.kept.get("lk-g-g1-1")).toMatchObject({ groupStartSeq: 1 });
    port.kept.delete("lk-g-g1-1");
    await consumers.remake(wish(), 1, group, 33, streamSnapshot({ retention: "workqueue" }));
    expect(port.did.at(-1)).toBe("create lk-g-g1-1 from 1");
  });

  test("a consumer that vanishes while it is made is a typed error, not an endless loop", async () => {
    const { port, consumers } = scene();
    let made = false;
    port.before = (request) => {
      if (request.startsWith("create lk-g-g1-0")) made = true;
      else if (made && request === "read lk-g-g1-0") port.kept.delete("lk-g-g1-0");
    };
    await expect(consumers.ensure(wish(), streamSnapshot())).rejects.toMatchObject({
      code: "CONSUMER_NOT_FOUND",
    });
  });
});

describe("ackWaitMs (O2)", () => {
  async function existing(change: object) {
    const { port, consumers } = scene();
    await consumers.ensure(wish(), streamSnapshot());
    for (const name of port.kept.keys()) port.put(name, change);
    port.did.length = 0;
    return { port, consumers };
  }

  test("a rise is applied at once, though workers pull", async () => {
    const { port, consumers } = await existing({ waiting: 2 });
    const { lanes } = await consumers.ensure(wish({ ackWaitMs: 60_000 }), streamSnapshot());
    expect(lanes.map(({ ackWaitMs }) => ackWaitMs)).toEqual([60_000, 60_000, 60_000]);
    expect(port.did).toHaveLength(3);
  });

  test.each([{ waiting: 1 }, { inFlight: 1 }])(
    "a lower one waits while somebody counts on it: %j",
    async (busy) => {
      const { port, consumers } = await existing(busy);
      const { lanes } = await consumers.ensure(wish({ ackWaitMs: 5_000 }), streamSnapshot());
      expect(lanes.map(({ ackWaitMs }) => ackWaitMs)).toEqual([30_000, 30_000, 30_000]);
      expect(port.did).toEqual([]);
    },
  );

  test("a lower one is applied when nobody does", async () => {
    const { consumers } = await existing({});
    const { lanes } = await consumers.ensure(wish({ ackWaitMs: 5_000 }), streamSnapshot());
    expect(lanes.map(({ ackWaitMs }) => ackWaitMs)).toEqual([5_000, 5_000, 5_000]);
  });
});

describe("rewind and delete", () => {
  test("a rewind replaces every lane, lane 0 first, under a new incarnation", async () => {
    const { port, consumers } = scene();
    const before = await consumers.ensure(wish(), streamSnapshot());
    port.did.length = 0;
    await consumers.rewind("g", { startSeq: 9 }, streamSnapshot(), 30_000);
    expect(port.did.slice(0, 2)).toEqual(["delete lk-g-g1-0", "create lk-g-g1-0 from 9"]);
    const after = await consumers.ensure(wish(), streamSnapshot());
    expect(after).toMatchObject({ startSeq: 9, created: false });
    expect(after.incarnation).not.toBe(before.incarnation);
  });

  test("REWIND_INTERRUPTED: after a rewind that was cut off no worker starts, until it is rewound again (O3)", async () => {
    const { port, consumers } = scene();
    await consumers.ensure(wish(), streamSnapshot());
    port.before = (request) => {
      if (request === "delete lk-g-g1-1") throw new Error("cut off");
    };
    await expect(consumers.rewind("g", { startSeq: 9 }, streamSnapshot(), 30_000)).rejects.toThrow();
    port.before = () => {};
    await expect(consumers.ensure(wish(), streamSnapshot())).rejects.toMatchObject({
      code: "REWIND_INTERRUPTED",
      message: expect.stringContaining("group g "),
    });
    await consumers.rewind("g", { startSeq: 9 }, streamSnapshot(), 30_000);
    const group = await consumers.ensure(wish(), streamSnapshot());
    expect(group.lanes.map(({ groupStartSeq }) => groupStartSeq)).toEqual([9, 9, 9]);
    expect(new Set(group.lanes.map(({ incarnation }) => incarnation)).size).toBe(1);
  });

  test("a rewind that was cut off before a lane was made again leaves nothing to refuse: the lane is made", async () => {
    const { port, consumers } = scene();
    await consumers.ensure(wish(), streamSnapshot());
    let cut = false;
    port.before = (request) => {
      if (request.startsWith("create lk-g-g1-2")) cut = true;
      if (cut) throw new Error("cut off");
    };
    await expect(consumers.rewind("g", { startSeq: 9 }, streamSnapshot(), 30_000)).rejects.toThrow();
    port.before = () => {};
    const group = await consumers.ensure(wish(), streamSnapshot());
    expect(group.lanes.map(({ groupStartSeq }) => groupStartSeq)).toEqual([9, 9, 9]);
  });

  test("delete takes the group's consumers and no other group's, whatever their names look like", async () => {
    const { port, consumers } = scene();
    await consumers.ensure(wish(), streamSnapshot());
    await consumers.ensure(wish({ group: "g-g1-0" }), streamSnapshot());
    expect(await consumers.groups()).toEqual(["g", "g-g1-0"]);
    await consumers.delete("g");
    expect(await consumers.groups()).toEqual(["g-g1-0"]);
    expect(port.kept.size).toBe(3);
  });
});

describe("a group whose lanes had owners", () => {
  /** Owned consumers of all three lanes; lane 0 has settled up to 7, lane 1 nothing of its start at 5, lane 2 has none. */
  async function owned(change: Partial<StreamSnapshot> = {}) {
    const { port, consumers } = scene();
    const views: LaneView[] = [];
    for (const lane of [0, 1, 2]) {
      const name = `lk-g-g1-${lane}-e9`;
      if (lane < 2) port.put(name, { group: "g", lane, startSeq: 5, ackFloor: lane === 0 ? 7 : 0 });
      views.push({ lane, state: port.kept.get(name), startSeq: 3 });
    }
    return { port, consumers, views, snapshot: streamSnapshot(change) };
  }

  test("goes on in shared consumers where each lane stopped; interest is kept by making before deleting (O4)", async () => {
    const { port, consumers, views, snapshot } = await owned({ retention: "interest" });
    await consumers.continueFrom(wish(), views, snapshot);
    const of = (lane: number) => port.did.filter((did) => did.includes(`g1-${lane}`));
    expect(of(0)).toEqual(["create lk-g-g1-0 from 8", "delete lk-g-g1-0-e9"]);
    expect(of(1)).toEqual(["create lk-g-g1-1 from 5", "delete lk-g-g1-1-e9"]);
    expect(of(2)).toEqual(["create lk-g-g1-2 from 3"]);
    expect((await consumers.ensure(wish(), snapshot)).startSeq).toBe(3);
  });

  test("a work queue's consumers may not overlap: the owners' ones go first, and the rest is all there is", async () => {
    const { port, consumers, views, snapshot } = await owned({ retention: "workqueue" });
    await consumers.continueFrom(wish(), views, snapshot);
    const of = (lane: number) => port.did.filter((did) => did.includes(`g1-${lane}`));
    expect(of(0)).toEqual(["delete lk-g-g1-0-e9", "create lk-g-g1-0 from 1"]);
    expect(of(1)).toEqual(["delete lk-g-g1-1-e9", "create lk-g-g1-1 from 1"]);
  });

  test("interrupted, it is finished by the next worker, of the same incarnation", async () => {
    const { port, consumers, views, snapshot } = await owned();
    port.before = (request) => {
      if (request.startsWith("create lk-g-g1-2")) throw new Error("cut off");
    };
    await expect(consumers.continueFrom(wish(), views, snapshot)).rejects.toThrow("cut off");
    port.before = () => {};
    await consumers.continueFrom(wish(), views, snapshot);
    const group = await consumers.ensure(wish(), snapshot);
    expect(new Set(group.lanes.map(({ incarnation }) => incarnation)).size).toBe(1);
    expect(group.lanes.map(({ startSeq }) => startSeq)).toEqual([8, 5, 3]);
    expect(port.kept.size).toBe(3);
  });
});

describe("consumers that were made just now on a replicated stream", () => {
  test.each(["REQUEST_TIMEOUT", "JETSTREAM_UNAVAILABLE"] as const)(
    "%s: a consumer without a leader is asked for twice more",
    async (code) => {
      const { port, consumers } = scene();
      let asked = 0;
      port.before = (request) => {
        if (request === "read lk-g-g1-1" && ++asked <= 2) throw new LanekeeperError(code, "no leader yet");
      };
      await consumers.ensure(wish(), streamSnapshot());
      port.before = (request) => {
        if (request === "read lk-g-g1-1") throw new LanekeeperError(code, "no leader for long");
      };
      await expect(consumers.ensure(wish(), streamSnapshot())).rejects.toMatchObject({ code });
    },
  );

  test("any other refusal is not asked again", async () => {
    const { port, consumers } = scene();
    let asked = 0;
    port.before = (request) => {
      if (request !== "read lk-g-g1-1") return;
      asked++;
      throw new LanekeeperError("PERMISSION_DENIED", "no");
    };
    await expect(consumers.ensure(wish(), streamSnapshot())).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
    });
    expect(asked).toBe(1);
  });
});
