import { laneFilter, laneOf } from "@lanekeeper/partitioner";
import { describe, expect, test } from "vitest";
import type { LaneConsumerSpec } from "../../packages/core/src/runtime/lane-consumer-port.js";
import type { Delivery } from "../../packages/core/src/runtime/lane-feed-port.js";
import type { StreamSnapshot } from "../../packages/core/src/runtime/stream-port.js";
import { type ContractWorld, contractLayout, type OpenContractWorld } from "./contract-world.js";

const key = "customer-42";
const lane = laneOf(key, contractLayout.lanes, contractLayout.hash);
const filter = laneFilter(contractLayout, lane);
const expected = { assignment: "owned", maxAckPending: undefined } as const;
const deadlineMs = 15_000;

/** What the runtime takes for granted of a server, whichever is behind the ports. */
export function portsContract(name: string, open: OpenContractWorld): void {
  const inWorld = (retention: StreamSnapshot["retention"], body: (world: ContractWorld) => Promise<void>) => {
    return async () => {
      await using world = await open(retention);
      await world.drive(() => body(world));
    };
  };

  describe(`ports of ${name}`, () => {
    test(
      "bucket: only a write at the record's revision is carried out; revisions rise over all records",
      inWorld("limits", async ({ bucket }) => {
        const first = await bucket.write("g.a", "1", 0);
        expect(first.type).toBe("written");
        expect(await bucket.write("g.a", "2", 0)).toEqual({ type: "conflict" });
        const other = await bucket.write("g.b", "1", 0);
        const revision = (outcome: typeof first) =>
          outcome.type === "written" ? outcome.revision : Number.NaN;
        expect(revision(other)).toBeGreaterThan(revision(first));
        const second = await bucket.write("g.a", "3", revision(first));
        expect(revision(second)).toBeGreaterThan(revision(other));
        expect(await bucket.write("g.a", "4", revision(first))).toEqual({ type: "conflict" });
        expect(await bucket.read("g.a")).toEqual({ key: "g.a", revision: revision(second), value: "3" });
      }),
    );

    test(
      "bucket: a removed record has no value, and a later write expects what a read of it says",
      inWorld("limits", async ({ bucket }) => {
        const first = await bucket.write("g.a", "1", 0);
        if (first.type !== "written") throw new Error(first.type);
        const removed = await bucket.remove("g.a", first.revision);
        if (removed.type !== "written") throw new Error(removed.type);
        const found = await bucket.read("g.a");
        expect(found?.value).toBeUndefined();
        expect(await bucket.write("g.a", "2", first.revision)).toEqual({ type: "conflict" });
        expect((await bucket.write("g.a", "2", found?.revision ?? 0)).type).toBe("written");
        expect(await bucket.read("g.never")).toBeUndefined();
      }),
    );

    test(
      "bucket: a watch tells what is there, then every change in order",
      inWorld("limits", async (world) => {
        const { bucket } = world;
        await bucket.write("g.a", "1", 0);
        await bucket.write("h.a", "1", 0);
        const told: (string | undefined)[] = [];
        const watch = bucket.watch("g.", ({ value }) => void told.push(value));
        await until(world, () => told.length === 1);
        const second = await bucket.write("g.a", "2", 1);
        if (second.type !== "written") throw new Error(second.type);
        await bucket.remove("g.a", second.revision);
        await until(world, () => told.length === 3);
        expect(told).toEqual(["1", "2", undefined]);
        watch.stop();
      }),
    );

    test(
      "consumer: made once, read, changed, deleted; deleting what is not there is no error",
      inWorld("limits", async (world) => {
        const { consumers } = world;
        for (let i = 0; i < 4; i++) await world.publish(key);
        expect(await consumers.create(spec("c1", { startSeq: 3 }))).toBe(true);
        expect(await consumers.create(spec("c1", { startSeq: 3 }))).toBe(true);
        expect(await consumers.create(spec("c1", { startSeq: 2 }))).toBe(false);
        expect(await consumers.read("c1", filter, expected)).toMatchObject({
          name: "c1",
          group: "g",
          lane,
          generation: 1,
          incarnation: "i",
          startSeq: 3,
          ackWaitMs: 30_000,
          ackFloor: 2,
          deliveries: 0,
          deliveredSeq: 2,
          pending: 2,
          inFlight: 0,
          waiting: 0,
          differences: [],
        });
        await consumers.update("c1", { ackWaitMs: 3_000, maxAckPending: 5 });
        expect(await consumers.read("c1", filter, expected)).toMatchObject({
          ackWaitMs: 3_000,
          differences: [],
        });
        expect(await consumers.list()).toMatchObject([
          { name: "c1", group: "g", lane, assignment: "owned", waiting: 0 },
        ]);
        await consumers.delete("c1");
        await consumers.delete("c1");
        expect(await consumers.read("c1", filter, expected)).toBeUndefined();
        await expect(consumers.update("c1", { ackWaitMs: 3_000, maxAckPending: 5 })).rejects.toMatchObject({
          code: "CONSUMER_NOT_FOUND",
        });
      }),
    );

    test(
      "work queue: filters may not overlap, and what is acked is gone from the stream",
      inWorld("workqueue", async (world) => {
        const { consumers, stream } = world;
        await world.publish(key);
        await consumers.create(spec("c1"));
        await expect(consumers.create(spec("c2"))).rejects.toMatchObject({ code: "CONSUMER_OVERLAPS" });
        const fed = feedOf(world, "c1");
        const [first] = await fed.atLeast(1);
        expect(await stream.holds(1)).toBe(true);
        expect(await fed.feed.ackConfirmed(first)).toBe(true);
        await until(world, async () => !(await stream.holds(1)));
        fed.feed.close();
      }),
    );

    test(
      "MaxAckPending 1: the next event waits for the ack; delivery sequence and floor rise",
      inWorld("limits", async (world) => {
        await world.consumers.create(spec("c1", { maxAckPending: 1 }));
        const fed = feedOf(world, "c1");
        await world.publish(key);
        await world.publish(key);
        const [first] = await fed.atLeast(1);
        await world.sleep(300);
        expect(fed.deliveries).toHaveLength(1);
        expect(first).toMatchObject({ seq: 1, deliverySeq: 1, deliveries: 1 });
        expect(fed.feed.ack(first)).toBe(true);
        const [, second] = await fed.atLeast(2);
        expect(second).toMatchObject({ seq: 2, deliverySeq: 2, deliveries: 1 });
        expect(await world.consumers.read("c1", filter, expected)).toMatchObject({
          ackFloor: 1,
          inFlight: 1,
          deliveries: 2,
        });
        fed.feed.close();
      }),
    );

    test(
      "the floor stays below what is not acked, and jumps when it is",
      inWorld("limits", async (world) => {
        await world.consumers.create(spec("c1"));
        const fed = feedOf(world, "c1");
        for (let i = 0; i < 3; i++) await world.publish(key);
        const [first, second, third] = await fed.atLeast(3);
        await fed.feed.ackConfirmed(second);
        expect(await world.consumers.read("c1", filter, expected)).toMatchObject({
          ackFloor: 0,
          inFlight: 2,
        });
        await fed.feed.ackConfirmed(first);
        expect(await world.consumers.read("c1", filter, expected)).toMatchObject({
          ackFloor: 2,
          inFlight: 1,
        });
        await fed.feed.ackConfirmed(third);
        expect(await world.consumers.read("c1", filter, expected)).toMatchObject({
          ackFloor: 3,
          inFlight: 0,
        });
        fed.feed.close();
      }),
    );

    test(
      "an event given back comes again as another delivery, before newer ones; a late ack of the first still settles it",
      inWorld("limits", async (world) => {
        await world.consumers.create(spec("c1", { maxAckPending: 1 }));
        const fed = feedOf(world, "c1");
        await world.publish(key);
        await world.publish(key);
        const [first] = await fed.atLeast(1);
        fed.feed.release(first, 0);
        const [, again] = await fed.atLeast(2);
        expect(again).toMatchObject({ seq: 1, deliverySeq: 2, deliveries: 2, stamp: first.stamp });
        expect(await fed.feed.ackConfirmed(first)).toBe(true);
        const [, , next] = await fed.atLeast(3);
        expect(next).toMatchObject({ seq: 2, deliverySeq: 3 });
        fed.feed.close();
      }),
    );

    test(
      "silence for ackWait brings an event again; in-progress puts that off",
      inWorld("limits", async (world) => {
        const ackWaitMs = 2_000;
        await world.consumers.create(spec("c1", { maxAckPending: 1, ackWaitMs }));
        const fed = feedOf(world, "c1");
        await world.publish(key);
        const [first] = await fed.atLeast(1);
        let confirmed = 0;
        // Of the last one that the server took before it sent the event again: when is the machine's affair.
        let lastSentAt = Number.NEGATIVE_INFINITY;
        for (let i = 0; i < 5; i++) {
          const sentAt = world.now();
          fed.feed.working(first, () => {
            confirmed++;
            if (fed.deliveries.length === 1) lastSentAt = sentAt;
          });
          await world.sleep(700);
        }
        await until(world, () => confirmed === 5);
        const [, again] = await fed.atLeast(2);
        expect(again).toMatchObject({ seq: 1, deliveries: 2 });
        expect((fed.arrivedAt[1] ?? 0) - lastSentAt).toBeGreaterThanOrEqual(ackWaitMs);
        fed.feed.close();
      }),
    );

    test(
      "a deleted consumer is told to its puller, and answers to it reach nobody (O6)",
      inWorld("limits", async (world) => {
        await world.consumers.create(spec("c1"));
        const fed = feedOf(world, "c1");
        await world.publish(key);
        const [first] = await fed.atLeast(1);
        await world.consumers.create(spec("c2"));
        await world.consumers.delete("c1");
        await until(world, () => fed.troubles.includes("consumer-deleted"));
        expect(await fed.feed.ackConfirmed(first)).toBe(false);
        expect(await world.consumers.read("c2", filter, expected)).toMatchObject({
          ackFloor: 0,
          inFlight: 0,
          pending: 1,
        });
        fed.feed.close();
      }),
    );

    test(
      "after a drain nothing comes, and what is published then is left for the next one",
      inWorld("limits", async (world) => {
        await world.consumers.create(spec("c1"));
        const fed = feedOf(world, "c1");
        await world.publish(key);
        await fed.atLeast(1);
        await fed.feed.drain(["c1"], 2_000);
        fed.feed.remove("c1");
        await world.publish(key);
        await world.sleep(300);
        expect(fed.deliveries).toHaveLength(1);
        fed.feed.close();
      }),
    );

    test(
      "interest: an event stays while the consumer that takes over wants it",
      inWorld("interest", async (world) => {
        await world.consumers.create(spec("c1"));
        await world.publish(key);
        await world.publish(key);
        const fed = feedOf(world, "c1");
        const [first] = await fed.atLeast(2);
        await fed.feed.ackConfirmed(first);
        await until(world, async () => !(await world.stream.holds(1)));
        await world.consumers.create(spec("c2", { startSeq: 2 }));
        await world.consumers.delete("c1");
        await world.sleep(200);
        expect(await world.stream.holds(2)).toBe(true);
        const next = feedOf(world, "c2");
        expect((await next.atLeast(1))[0]).toMatchObject({ seq: 2, deliverySeq: 1 });
        next.feed.close();
        fed.feed.close();
      }),
    );
  });
}

function spec(name: string, changes: Partial<LaneConsumerSpec> = {}): LaneConsumerSpec {
  return {
    name,
    group: "g",
    assignment: "owned",
    generation: 1,
    lane,
    filter,
    startSeq: 1,
    groupStartSeq: 1,
    incarnation: "i",
    ackWaitMs: 30_000,
    maxAckPending: 10,
    ...changes,
  };
}

function feedOf(world: ContractWorld, consumer: string) {
  const deliveries: Delivery[] = [];
  const arrivedAt: number[] = [];
  const troubles: string[] = [];
  const feed = world.openFeed({
    delivered: (delivery) => {
      deliveries.push(delivery);
      arrivedAt.push(world.now());
    },
    trouble: (_consumer, kind) => void troubles.push(kind),
    recovered: () => {},
    denied: (error) => void troubles.push(error.code),
  });
  feed.add(consumer);
  return {
    feed,
    deliveries,
    arrivedAt,
    troubles,
    async atLeast(count: number): Promise<[Delivery, Delivery, Delivery]> {
      await until(world, () => deliveries.length >= count);
      return deliveries as [Delivery, Delivery, Delivery];
    },
  };
}

async function until(world: ContractWorld, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let waited = 0; !(await condition()); waited += 20) {
    if (waited > deadlineMs) throw new Error(`not so after ${deadlineMs} ms: ${condition.toString()}`);
    await world.sleep(20);
  }
}
