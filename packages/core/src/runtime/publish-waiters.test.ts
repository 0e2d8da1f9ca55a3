import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { systemClock } from "./clock.js";
import { PublishWaiters } from "./publish-waiters.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** What a promise has come to by now. */
function watch(work: Promise<void>): { state: string } {
  const seen = { state: "pending" };
  work.then(
    () => {
      seen.state = "resolved";
    },
    (error: LanekeeperError) => {
      seen.state = error.code;
    },
  );
  return seen;
}

const settle = () => vi.advanceTimersByTimeAsync(0);

test("as many go on as there is room for, in order", async () => {
  let room = 0;
  const waiters = new PublishWaiters(() => room, systemClock, 1_000);
  const seen = [watch(waiters.room()), watch(waiters.room()), watch(waiters.room())];
  room = 2;
  waiters.onRoom();
  await settle();
  expect(seen.map(({ state }) => state)).toEqual(["resolved", "resolved", "pending"]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(seen[2]?.state).toBe("resolved");
});

test("who was let go counts until it publishes: no more are let go than find room", async () => {
  let room = 4;
  const waiters = new PublishWaiters(() => room, systemClock, 1_000);
  const seen = Array.from({ length: 6 }, () => watch(waiters.room()));
  const resolved = () => seen.filter(({ state }) => state === "resolved").length;
  // Several answers of one chunk, before anybody who was let go has run.
  waiters.onRoom();
  waiters.onRoom();
  await settle();
  expect(resolved()).toBe(4);
  for (let n = 0; n < 4; n++) {
    room--;
    waiters.onAccepted();
  }
  room++;
  waiters.onRoom();
  await settle();
  expect(resolved()).toBe(5);
});

test("who was let go and does not publish is forgotten, and the next go on though nothing else happens", async () => {
  let room = 0;
  const waiters = new PublishWaiters(() => room, systemClock, 1_000);
  const seen = [watch(waiters.room()), watch(waiters.room()), watch(waiters.room())];
  room = 1;
  waiters.onRoom();
  await settle();
  expect(seen.map(({ state }) => state)).toEqual(["resolved", "pending", "pending"]);
  await vi.advanceTimersByTimeAsync(2);
  expect(seen.map(({ state }) => state)).toEqual(["resolved", "resolved", "resolved"]);
});

test("without room for the timeout: BUFFER_FULL; stopped: the reason", async () => {
  const waiters = new PublishWaiters(() => 0, systemClock, 1_000);
  const late = watch(waiters.room());
  await vi.advanceTimersByTimeAsync(1_000);
  expect(late.state).toBe("BUFFER_FULL");
  const stopped = watch(waiters.room());
  waiters.stop(new LanekeeperError("CLOSED", "x"));
  const after = watch(waiters.room());
  await settle();
  expect([stopped.state, after.state]).toEqual(["CLOSED", "CLOSED"]);
});

test("settled() waits for what was accepted before it, in whatever order that settles, and for nothing later", async () => {
  const waiters = new PublishWaiters(() => 1, systemClock, 1_000);
  for (let n = 0; n < 3; n++) waiters.onAccepted();
  const seen = watch(waiters.settled());
  waiters.onAccepted();
  for (const number of [4, 3, 1]) waiters.onSettled(number);
  await settle();
  expect(seen.state).toBe("pending");
  waiters.onSettled(2);
  await settle();
  expect(seen.state).toBe("resolved");
  const empty = watch(waiters.settled());
  await settle();
  expect(empty.state).toBe("resolved");
});
