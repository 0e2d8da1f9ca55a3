import { setTimeout as sleep } from "node:timers/promises";
import { openLanes } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { laneOf } from "@lanekeeper/partitioner";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition, within } from "./harness/await-condition.js";
import { gate, openScene, type Scene } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

test("status tells pending, in flight, the oldest event's age, workers, and every lane", async () => {
  await using scene = await openScene(server);
  const hold = gate();
  const run = await scene.worker(() => hold.opened, { name: "W" });
  await scene.publish("K", "K", "K");
  await awaitCondition(() => scene.runs.length === 1, { what: "the first run" });
  await sleep(150);
  const asked = async () => {
    const answer = await scene.lanes.group("audit").status();
    return answer.workers.length > 0 && answer;
  };
  // Asked again: a worker whose answer comes late is not in it.
  const status = await awaitCondition(asked, { what: "the worker to be in the group's status" });
  const lane = laneOf("K", 4);
  expect(status).toMatchObject({ pending: 2, inFlight: 1, blockedKeys: [] });
  expect(status.workers).toEqual([{ id: "W", lanes: [0, 1, 2, 3] }]);
  expect(status.oldestMs).toBeGreaterThanOrEqual(100);
  expect(status.oldestMs).toBeLessThan(20_000);
  expect(status.lanes).toHaveLength(4);
  expect(status.lanes[lane]).toEqual({
    generation: 1,
    lane,
    pending: 2,
    inFlight: 1,
    redelivered: 0,
    ackFloor: 0,
  });
  expect(run.worker.status()).toMatchObject({ healthy: true, inFlight: 1, lanes: [0, 1, 2, 3] });
  hold.open();
  await scene.ended(3);
  await scene.lanes.group("audit").caughtUp({ signal: AbortSignal.timeout(10_000) });
  expect(await scene.lanes.group("audit").status()).toMatchObject({ pending: 0, inFlight: 0, oldestMs: 0 });
  expect(await scene.lanes.groups()).toEqual(["audit"]);
});

test("caughtUp waits for what was stored before the call and no longer; without workers its signal ends it", async () => {
  await using scene = await openScene(server);
  const group = scene.lanes.group("audit");
  await expect(group.caughtUp()).rejects.toMatchObject({ code: "GROUP_NOT_FOUND" });
  const first = await scene.worker();
  await group.caughtUp();
  await first.worker.close();
  await scene.publish("a", "b", "c");
  const why = new Error("enough");
  const control = new AbortController();
  const waiting = group.caughtUp({ signal: control.signal });
  const early = await Promise.race([waiting.then(() => "caught up"), sleep(400, "waiting")]);
  expect(early).toBe("waiting");
  control.abort(why);
  await expect(waiting).rejects.toBe(why);
  const caught = group.caughtUp().then(() => scene.runs.filter(({ endedAt }) => endedAt).length);
  await scene.worker();
  expect(await within(caught, 10_000, "caughtUp")).toBe(3);
});

test("delete and rewind: GROUP_RUNNING while a worker lives in another client; then they work, under a new incarnation", async () => {
  await using scene = await openScene(server);
  const incarnations = new Set<string>();
  const note = (_: unknown, { fence }: { fence: { incarnation: string } }) =>
    void incarnations.add(fence.incarnation);
  const first = await scene.worker(note, { name: "A" });
  await scene.publish("a", "b", "c", "d");
  await scene.ended(4);
  const group = scene.lanes.group("audit");
  await expect(group.delete()).rejects.toMatchObject({ code: "GROUP_RUNNING" });
  // Named as soon as its answer comes in time; refused whether or not it does.
  const named = async () => {
    const refusal = group.rewind("all");
    await expect(refusal).rejects.toMatchObject({ code: "GROUP_RUNNING" });
    return refusal.catch(({ message }) => /\(A\)/.test(message));
  };
  await awaitCondition(named, { what: "the refusal to name the worker" });
  await first.worker.close();
  await group.rewind({ startSeq: 3 });
  const second = await scene.worker(note);
  await scene.ended(6);
  expect(
    scene.runs
      .slice(4)
      .map(({ seq }) => seq)
      .sort(),
  ).toEqual([3, 4]);
  expect(incarnations.size).toBe(2);
  await second.worker.close();
  await group.delete();
  expect(await scene.lanes.groups()).toEqual([]);
  await group.delete();
  await expect(group.rewind("all")).rejects.toMatchObject({ code: "GROUP_NOT_FOUND" });
});

test("rewind to a time starts at the first event stored at or after it, in every lane", async () => {
  await using scene = await openScene(server);
  const first = await scene.worker();
  await scene.publish("a", "b", "c", "d");
  await scene.ended(4);
  await first.worker.close();
  await sleep(50);
  const startTime = new Date();
  await sleep(50);
  await scene.publish("a", "e", "b");
  await scene.lanes.group("audit").rewind({ startTime });
  await scene.worker();
  await scene.ended(7);
  expect(
    scene.runs
      .slice(4)
      .map(({ seq }) => seq)
      .sort(),
  ).toEqual([5, 6, 7]);
});

test("O3: after an interrupted rewind no worker starts, until it is rewound again", async () => {
  await using scene = await openScene(server);
  const first = await scene.worker();
  await scene.publish("a", "b", "c", "d", "e", "f");
  await scene.ended(6);
  await first.worker.close();
  // What a rewind that was killed after its first lane leaves behind: lane 0 of a new incarnation, the others as they were.
  const name = `lk-audit-g1-0`;
  const { config } = await scene.manager.consumers.info(scene.stream, name);
  await scene.manager.consumers.delete(scene.stream, name);
  const metadata = { ...config.metadata, "lanekeeper.incarnation": "interrupted/1" };
  await scene.manager.consumers.add(scene.stream, { ...config, metadata });
  await expect(scene.worker()).rejects.toMatchObject({ code: "REWIND_INTERRUPTED" });
  expect(scene.runs).toHaveLength(6);
  await scene.lanes.group("audit").rewind("all");
  const incarnations = new Set<string>();
  await scene.worker((_, { fence }) => void incarnations.add(fence.incarnation));
  await scene.ended(12);
  expect(new Set(scene.runs.slice(6).map(({ seq }) => seq))).toEqual(new Set([1, 2, 3, 4, 5, 6]));
  expect(incarnations.size).toBe(1);
});

const starts: [string, (scene: Scene) => Promise<"new" | { startSeq: number } | { startTime: Date }>][] = [
  ["new", async () => "new"],
  ["startSeq", async () => ({ startSeq: 5 })],
  [
    "startTime",
    async (scene) => ({
      startTime: new Date((await scene.manager.streams.getMessage(scene.stream, { seq: 5 }))?.time ?? 0),
    }),
  ],
];

test.each(starts)(
  "deliverPolicy %s is resolved once for all lanes: two workers that start at once agree",
  async (kind, policyOf) => {
    await using scene = await openScene(server, { create: { lanes: 8 } });
    for (let n = 0; n < 8; n++) {
      await scene.publish(`old${n}`);
      await sleep(3);
    }
    const deliverPolicy = await policyOf(scene);
    const live = gate();
    const publishing = (async () => {
      for (let n = 0; n < 40; n++) {
        await scene.publish(`live${n}`);
        if (n === 5) live.open();
      }
    })();
    await live.opened;
    const options = { deliverPolicy };
    await Promise.all([scene.worker(undefined, options), scene.worker(undefined, options)]);
    await publishing;
    await scene.lanes.group("audit").caughtUp({ signal: AbortSignal.timeout(20_000) });
    const seqs = scene.runs.map(({ seq }) => seq).sort((a, b) => a - b);
    const first = seqs[0] ?? 0;
    // O4: from the group's start on, every lane's every event, once.
    expect(seqs).toEqual(Array.from({ length: 48 - first + 1 }, (_, n) => first + n));
    if (kind === "new") expect(first).toBeGreaterThan(8);
    else expect(first).toBe(5);
    const starts = new Set(
      (await scene.consumers()).map(({ config }) => config.metadata?.["lanekeeper.start"]),
    );
    expect(starts.size).toBe(1);
  },
);

test("deliverPolicy is ignored once the group exists", async () => {
  await using scene = await openScene(server);
  await scene.publish("a", "b");
  const first = await scene.worker(undefined, { deliverPolicy: { startSeq: 2 } });
  await scene.ended(1);
  await first.worker.close();
  await scene.worker(undefined, { deliverPolicy: "all" });
  await scene.publish("c");
  await scene.ended(2);
  expect(scene.runs.map(({ seq }) => seq)).toEqual([2, 3]);
});

test("O4: a start beyond the end means the end, for every lane: whatever is stored afterwards is handled", async () => {
  await using scene = await openScene(server);
  await scene.publish("a", "b");
  const hold = gate();
  const first = await scene.worker(() => hold.opened, { deliverPolicy: { startSeq: 1_000 } });
  await scene.publish("a", "b", "c", "d");
  const group = scene.lanes.group("audit");
  const caught = group.caughtUp().then(() => "caught up");
  expect(await Promise.race([caught, sleep(500, "waiting")])).toBe("waiting");
  hold.open();
  await within(caught, 10_000, "caughtUp");
  expect(scene.runs.map(({ seq }) => seq).sort((a, b) => a - b)).toEqual([3, 4, 5, 6]);
  await first.worker.close();
  await group.rewind({ startSeq: 1_000 });
  await scene.publish("a", "b", "c", "d");
  await scene.worker();
  await group.caughtUp({ signal: AbortSignal.timeout(10_000) });
  expect(
    scene.runs
      .slice(4)
      .map(({ seq }) => seq)
      .sort((a, b) => a - b),
  ).toEqual([7, 8, 9, 10]);
});

test("groups are independent: each has every event, its own progress, and its own consumers", async () => {
  await using scene = await openScene(server);
  await scene.worker(undefined, { group: "a" });
  await scene.worker(undefined, { group: "a-g1" });
  await scene.publish("x", "y");
  await scene.ended(4);
  expect(await scene.lanes.groups()).toEqual(["a", "a-g1"]);
  await expect(scene.lanes.group("a").status()).resolves.toMatchObject({ workers: [{ id: "worker" }] });
});

test.each(["a b", "a.b", "a/b", "", "é", "a*", "x".repeat(300)])(
  "R42: the group name %j is a typed error before anything is sent",
  async (group) => {
    await using scene = await openScene(server);
    const lanes = await openLanes(scene.connection, { stream: scene.stream });
    await expect(lanes.work({ group, assignment: "shared" }, () => {})).rejects.toMatchObject({
      code: "INVALID_OPTIONS",
    });
    expect(() => lanes.group(group)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
    expect(await lanes.groups()).toEqual([]);
  },
);
