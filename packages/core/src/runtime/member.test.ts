import { expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { Lease, leaseRules } from "../domain/lease.js";
import { Member } from "./member.js";
import { MemoryBucket } from "./memory-bucket.test-support.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

const key = "g.member.m";

function setUp() {
  const bucket = new MemoryBucket();
  const clock = new VirtualClock();
  const told: string[] = [];
  const member = new Member({
    id: "m",
    key,
    name: "worker",
    lease: new Lease(leaseRules(5_000)),
    bucket,
    clock,
    observer: { beaten: () => void told.push("beaten"), deposed: () => void told.push("deposed") },
  });
  return { bucket, clock, told, member };
}

test("a first beat whose outcome is not known is found by the next attempt: one record, one member", async () => {
  const { bucket, clock, told, member } = setUp();
  let asked = 0;
  const write = bucket.write.bind(bucket);
  bucket.write = async (...args) => {
    const outcome = await write(...args);
    return ++asked === 1 ? { type: "unknown" } : outcome;
  };
  bucket.before = async (request) => {
    if (request === "read" && asked === 1) throw new LanekeeperError("REQUEST_TIMEOUT", "no answer");
  };
  expect(await member.join()).toBe(false);
  expect(await member.join()).toBe(true);
  expect(bucket.live).toEqual([key]);
  expect([told, member.over, clock.timers]).toEqual([["beaten"], false, 1]);
  member.stop();
});

test.each(["PERMISSION_DENIED", "CONNECTION_CLOSED"] as const)("who joins is told of %s", async (code) => {
  const { bucket, member } = setUp();
  bucket.before = async () => {
    throw new LanekeeperError(code, "planted");
  };
  await expect(member.join()).rejects.toMatchObject({ code });
});

test("removed while a beat is under way, it leaves no record: the beat says which revision there is", async () => {
  const { bucket, clock, member } = setUp();
  await member.join();
  let answer = () => {};
  bucket.answered = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  await clock.advance(leaseRules(5_000).beatMs);
  const removed = member.remove();
  bucket.answered = async () => {};
  answer();
  await removed;
  expect(bucket.live).toEqual([]);
  expect(clock.timers).toBe(0);
});
