import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { deleteConsumer } from "./harness/delete-consumer.js";
import { remakeStream } from "./harness/remake-stream.js";
import { gate, openScene, type Scene, type SceneWorkerOptions } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const owned: SceneWorkerOptions = { assignment: "owned", leaseMs: 1_500 };

describe.each(["limits", "workqueue", "interest"] as const)(
  "owned lanes of a stream with %s retention",
  (retention) => {
    test("O1–O4: lanes that change hands over and over lose, repeat and swap nothing", async () => {
      await using scene = await openScene(server, { create: { lanes: 8, streamConfig: { retention } } });
      const keys = Array.from({ length: 24 }, (_, n) => `key-${n}`);
      let current = await scene.worker(async () => {}, { ...owned, maxAckPending: 8 });
      await lanesOf(current.worker, 8);
      for (let round = 0; round < 4; round++) {
        await scene.publish(...keys);
        const next = await scene.worker(async () => {}, { ...owned, maxAckPending: 8 });
        await scene.publish(...keys);
        await lanesOf(next.worker, 4);
        await scene.publish(...keys);
        await current.worker.close();
        await scene.publish(...keys);
        current = next;
      }
      await scene.ended(keys.length * 16);
      await current.worker.close();
      expect(scene.runs).toHaveLength(keys.length * 16);
      for (const key of keys) {
        const seqs = scene.runs.filter((run) => run.key === key).map(({ seq }) => seq);
        expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
      }
      expect(scene.runs.filter(({ attempt }) => attempt > 1)).toEqual([]);
      if (retention === "workqueue") await emptied(scene);
    });
  },
);

test("O3, O6: a lane that is rewound while its events run does not run again what was settled above one that is stuck", async () => {
  await using scene = await openScene(server, { create: { lanes: 1 } });
  const stuck = gate();
  const { worker, told } = await scene.worker(
    async ({ key }) => {
      if (key === "stuck") await stuck.opened;
    },
    { ...owned, maxAckPending: 16 },
  );
  await scene.publish("stuck", "a", "b", "a", "c");
  await scene.ended(4);
  const [consumer] = await consumersOf(scene);
  if (consumer === undefined) throw new Error("the lane has no consumer");
  await deleteConsumer(scene.manager, scene.stream, consumer);
  await told("rewound");
  await scene.publish("d");
  await scene.ended(5);
  stuck.open();
  await awaitCondition(
    () => scene.runs.filter(({ key, endedAt }) => key === "stuck" && endedAt !== undefined).length > 0,
    {
      what: "the stuck event to end",
    },
  );
  await awaitCondition(async () => worker.status().inFlight === 0, { what: "nothing in flight" });
  const others = scene.runs.filter(({ key }) => key !== "stuck").map(({ seq }) => seq);
  expect(others.toSorted()).toEqual([2, 3, 4, 5, 6]);
  await scene.expectNoFaults();
});

test("maxAckPending above 1: different keys of one lane run at once, those of a key one after the other", async () => {
  await using scene = await openScene(server, { create: { lanes: 1 } });
  const open = gate();
  let running = 0;
  let most = 0;
  await scene.worker(
    async () => {
      running++;
      most = Math.max(most, running);
      await open.opened;
      running--;
    },
    { ...owned, maxAckPending: 16 },
  );
  const keys = Array.from({ length: 8 }, (_, n) => `key-${n}`);
  await scene.publish(...keys, ...keys);
  await awaitCondition(() => running === 8, { what: () => `8 keys to run at once (so far ${running})` });
  open.open();
  // Not 16 runs: where a stall ends the lease, events run again.
  const ended = () => new Set(scene.runs.filter(({ endedAt }) => endedAt).map(({ seq }) => seq)).size;
  await awaitCondition(() => ended() === 16, { what: () => `16 events to be handled (so far ${ended()})` });
  expect(most).toBe(8);
  await scene.expectNoFaults();
});

test("a key that fails for ever with onExhausted block holds up its own events and no others (5 % of the keys)", async () => {
  await using scene = await openScene(server, { create: { lanes: 4 } });
  const keys = Array.from({ length: 100 }, (_, n) => `key-${n}`);
  const bad = new Set(keys.filter((_, n) => n % 20 === 0));
  const { worker } = await scene.worker(
    async ({ key }) => {
      if (bad.has(key)) throw new Error("it never works");
    },
    {
      ...owned,

      maxAckPending: 64,
      retry: { attempts: 2, initialDelayMs: 10, maxDelayMs: 100, jitter: 0 },
      onExhausted: "block",
    },
  );
  const rounds = 20;
  for (let round = 0; round < rounds; round++) await scene.publish(...keys);
  const good = keys.length - bad.size;
  const handled = () =>
    scene.runs.filter(({ key, endedAt }) => !bad.has(key) && endedAt !== undefined).length;
  await awaitCondition(() => handled() >= good * rounds, {
    what: () => `${good * rounds} events of good keys (so far ${handled()})`,
    timeoutMs: 30_000,
  });
  expect(
    new Set(scene.runs.filter(({ key }) => bad.has(key)).map(({ key, seq }) => `${key} ${seq}`)).size,
  ).toBe(bad.size);
  const listed = [...bad].toSorted().join();
  // Asked again: a worker whose answer comes late is not in it.
  await awaitCondition(
    async () => (await scene.lanes.group(scene.group).status()).blockedKeys.toSorted().join() === listed,
    { what: "exactly the bad keys to be listed as blocked" },
  );
  await worker.close({ graceMs: 500 });
});

test("interest retention with replicas is refused for owned lanes", { timeout: 180_000 }, async () => {
  await using cluster = await startTestServer({ nodes: 3 });
  const create = { streamConfig: { retention: "interest", num_replicas: 3 } } as const;
  await using scene = await openScene(cluster, { create });
  await expect(scene.worker(async () => {}, { ...owned })).rejects.toMatchObject({ code: "UNSAFE_STREAM" });
});

test("R40: a stream deleted and made again under owned workers: work starts at its first event, whatever they had claimed", async () => {
  await using scene = await openScene(server, { create: { lanes: 4 } });
  const workers = [
    await scene.worker(async () => {}, { ...owned }),
    await scene.worker(async () => {}, owned),
  ];
  const keys = Array.from({ length: 16 }, (_, n) => `key-${n}`);
  for (let round = 0; round < 5; round++) await scene.publish(...keys);
  await scene.ended(80);
  const { config } = await scene.manager.streams.info(scene.stream);
  for (let round = 1; round <= 3; round++) {
    await scene.manager.streams.delete(scene.stream);
    await remakeStream(scene.manager, config);
    const before = scene.runs.length;
    // Events under way in the old stream's name may not be the first ones handled.
    await scene.publish(...keys);
    await scene.publish(...keys);
    await scene.ended(before + 32, 60_000);
    const runs = scene.runs.slice(before);
    expect(runs).toHaveLength(32);
    for (const key of keys) {
      const seqs = runs.filter((run) => run.key === key).map(({ seq }) => seq);
      expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
    }
  }
  for (const { worker } of workers) expect(worker.status().healthy).toBe(true);
});

test("R40: the bucket deleted under owned workers: they fence themselves and say so, and another start goes on where they stopped", async () => {
  await using scene = await openScene(server, { create: { lanes: 4 } });
  const old = await scene.worker(async () => {}, { ...owned });
  await scene.publish("a", "b", "c", "d");
  await scene.ended(4);
  const bucket = `lanekeeper_${scene.stream}`;
  await scene.manager.streams.delete(`KV_${bucket}`);
  await awaitCondition(() => !old.worker.status().healthy, {
    what: "the worker to be unhealthy",
    timeoutMs: 10_000,
  });
  await scene.publish("a", "b", "c", "d");
  const fresh = await scene.worker(async () => {}, { ...owned });
  await scene.ended(8, 30_000);
  await scene.publish("a", "b", "c", "d");
  await scene.ended(12, 30_000);
  expect(scene.runs).toHaveLength(12);
  await old.worker.close({ graceMs: 100 });
  await fresh.worker.close();
  await scene.expectNoFaults();
});

describe("a group moves between shared and owned", () => {
  test("refused while workers of the other kind live, continued from their floor otherwise", async () => {
    await using scene = await openScene(server, { create: { lanes: 4 } });
    const keys = Array.from({ length: 12 }, (_, n) => `key-${n}`);
    const shared = await scene.worker(async () => {}, { assignment: "shared" });
    await scene.publish(...keys);
    await scene.ended(12);
    await expect(scene.worker(async () => {}, { ...owned })).rejects.toMatchObject({
      code: "ASSIGNMENT_DIFFERS",
    });
    await shared.worker.close();
    await scene.publish(...keys);
    const mine = await scene.worker(async () => {}, { ...owned });
    await scene.ended(24);
    await scene.publish(...keys);
    await scene.ended(36);
    await expect(scene.worker(async () => {}, { assignment: "shared" })).rejects.toMatchObject({
      code: "ASSIGNMENT_DIFFERS",
    });
    await mine.worker.close();
    await scene.publish(...keys);
    const back = await scene.worker(async () => {}, { assignment: "shared" });
    await scene.ended(48);
    await back.worker.close();
    const again = await scene.worker(async () => {}, { ...owned });
    await scene.publish(...keys);
    await scene.ended(60);
    await again.worker.close();
    expect(scene.runs).toHaveLength(60);
    await scene.expectNoFaults();
  });
});

async function lanesOf(worker: { lanes(): number[] }, count: number): Promise<void> {
  await awaitCondition(() => worker.lanes().length >= count, {
    what: () => `${count} lanes (so far ${worker.lanes().length})`,
  });
}

async function consumersOf(scene: Scene): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of scene.manager.consumers.list(scene.stream)) names.push(name);
  return names;
}

async function emptied(scene: Scene): Promise<void> {
  await awaitCondition(async () => (await scene.manager.streams.info(scene.stream)).state.messages === 0, {
    what: "the work queue to be empty",
  });
}
