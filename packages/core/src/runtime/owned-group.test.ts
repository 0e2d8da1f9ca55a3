import { expect, test } from "vitest";
import { leaseRules } from "../domain/lease.js";
import { countedIds } from "./group-consumers.test-support.js";
import { MemoryBucket } from "./memory-bucket.test-support.js";
import { OwnedGroup } from "./owned-group.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

const created = "2026-01-01T00:00:00Z";
const rules = leaseRules(5_000);

async function setUp() {
  const bucket = new MemoryBucket();
  const clock = new VirtualClock();
  const group = new OwnedGroup({
    group: "g",
    generation: 1,
    lanes: 2,
    workerName: "worker",
    rules,
    bucket,
    clock,
    closing: new AbortController().signal,
    newId: countedIds(),
    observer: {
      changed() {},
      claimSeen() {},
      beaten() {},
      regrouped() {},
      deposed() {},
    },
  });
  await group.agree(async () => ({ created, incarnation: `${created}/i`, startSeq: 1 }), created);
  /** Holds the next request of this kind to a key until it is let go. */
  const hold = (kind: "read" | "write", part: string) => {
    let letGo = () => {};
    let reached = () => {};
    const isReached = new Promise<void>((resolve) => {
      reached = resolve;
    });
    bucket.before = async (request, key) => {
      if (request !== kind || !key.includes(part)) return;
      bucket.before = async () => {};
      reached();
      await new Promise<void>((resolve) => {
        letGo = resolve;
      });
    };
    return { reached: isReached, letGo: () => letGo() };
  };
  const members = () => bucket.live.filter((key) => key.includes(".member."));
  /** Another member calls this one dead. */
  const depose = () => {
    const [key = ""] = members();
    const entry = bucket.entries.get(key);
    const record = { ...JSON.parse(entry?.value ?? "{}"), status: "dead" };
    return bucket.write(key, JSON.stringify(record), entry?.revision ?? 0);
  };
  return { bucket, clock, group, hold, members, depose };
}

test("O4: ended while it joins, a worker leaves no member: lanes would be given to nobody", async () => {
  const { clock, group, hold, members } = await setUp();
  const reading = hold("read", "g");
  const joining = group.join();
  await reading.reached;
  await group.leave();
  await group.end(true);
  reading.letGo();
  await joining;
  await clock.advance(30_000);
  expect(members()).toEqual([]);
  expect(clock.timers).toBe(0);
});

test("O4: ended while its first beat is on its way, it leaves none either", async () => {
  const { clock, group, hold, members } = await setUp();
  const writing = hold("write", ".member.");
  const joining = group.join();
  await writing.reached;
  const ended = group.end(true);
  writing.letGo();
  await Promise.all([joining, ended]);
  await clock.advance(30_000);
  expect(members()).toEqual([]);
  expect(clock.timers).toBe(0);
});

test("O4: ended after it was called dead, while it asks what the group has agreed on, it joins no more", async () => {
  const { clock, group, hold, members, depose } = await setUp();
  await group.join();
  await depose();
  const agreeing = hold("read", "g.group");
  await clock.advance(rules.beatMs);
  await agreeing.reached;
  await group.leave();
  await group.end(true);
  const before = members().length;
  agreeing.letGo();
  await clock.advance(30_000);
  expect(members().length).toBe(before);
  expect(clock.timers).toBe(0);
});
