import { describe, expect, test } from "vitest";
import { CompletedMemory } from "./completed-memory.js";
import { type LaneEffect, LaneMachine, type LaneMachineOptions } from "./lane-machine.js";

const retry = { attempts: 3, initialDelayMs: 100, factor: 2, maxDelayMs: 1_000, jitter: 0 };

function machine(options: Partial<LaneMachineOptions> = {}): LaneMachine {
  return new LaneMachine({ retry, onExhausted: "block", ...options }, new CompletedMemory());
}

function deliver(lane: LaneMachine, seq: number, key = "k", stamp = `at-${seq}`): LaneEffect[] {
  return lane.step({ type: "delivered", seq, key, stamp });
}

function fail(lane: LaneMachine, run: number, more: { terminal?: boolean; retryAfterMs?: number } = {}) {
  return lane.step({ type: "failed", run, terminal: false, roll: 0, now: 0, ...more });
}

const start = (seq: number, run: number, retries = 0): LaneEffect => ({ type: "start", seq, run, retries });

describe("starting and settling", () => {
  test("an event starts when it is delivered and is acked when its handler has ended, not before", () => {
    const lane = machine();
    expect(deliver(lane, 1)).toEqual([start(1, 1)]);
    expect(lane.held).toBe(1);
    expect(lane.step({ type: "handled", run: 1 })).toEqual([{ type: "ack", seq: 1, again: false }]);
    expect(lane.held).toBe(0);
  });

  test("O1, O3: the next event of a key starts when the one before is settled; other keys go on beside it", () => {
    const lane = machine();
    deliver(lane, 1, "a");
    expect(deliver(lane, 2, "a")).toEqual([]);
    expect(deliver(lane, 3, "b")).toEqual([start(3, 2)]);
    expect(lane.step({ type: "handled", run: 1 })).toEqual([
      { type: "ack", seq: 1, again: false },
      start(2, 3),
    ]);
  });

  test("O1: an earlier event that comes late goes before a later one that has not started", () => {
    const lane = machine();
    deliver(lane, 1);
    deliver(lane, 5);
    deliver(lane, 3);
    expect(lane.step({ type: "handled", run: 1 })).toContainEqual(start(3, 2));
    expect(lane.step({ type: "handled", run: 2 })).toContainEqual(start(5, 3));
  });

  test("a redelivery of what is held changes nothing", () => {
    const lane = machine();
    deliver(lane, 1);
    expect(deliver(lane, 1)).toEqual([]);
    expect(lane.running).toBe(1);
  });

  test("an event completed here that comes again is acked again and not run again", () => {
    const lane = machine();
    deliver(lane, 1);
    lane.step({ type: "handled", run: 1 });
    expect(deliver(lane, 1)).toEqual([{ type: "ack", seq: 1, again: true }]);
  });

  test("a sequence that comes with another stamp is another event: it runs, though the sequence was completed", () => {
    const lane = machine();
    deliver(lane, 1, "k", "before");
    lane.step({ type: "handled", run: 1 });
    expect(deliver(lane, 1, "k", "after")).toEqual([start(1, 2)]);
  });

  test("O2, O6: another event under a held sequence fences the held one and waits for its handler", () => {
    const lane = machine();
    deliver(lane, 1, "k", "before");
    expect(deliver(lane, 1, "k", "after")).toEqual([{ type: "fence", seq: 1, run: 1 }]);
    expect(lane.step({ type: "handled", run: 1 })).toEqual([start(1, 2)]);
  });

  test("O2: a run that ends twice is refused loudly", () => {
    const lane = machine();
    deliver(lane, 1);
    lane.step({ type: "handled", run: 1 });
    expect(() => lane.step({ type: "handled", run: 1 })).toThrow(/O2/);
  });
});

describe("failures", () => {
  test("R23: a failed event is retried before its successors", () => {
    const lane = machine();
    deliver(lane, 1);
    deliver(lane, 2);
    expect(fail(lane, 1)).toEqual([
      { type: "retry", seq: 1, delayMs: 100 },
      { type: "wake", at: 100 },
    ]);
    expect(lane.step({ type: "tick", now: 99 })).toEqual([{ type: "wake", at: 100 }]);
    expect(lane.step({ type: "tick", now: 100 })).toEqual([start(1, 2, 1)]);
    expect(lane.step({ type: "handled", run: 2 })).toEqual([
      { type: "ack", seq: 1, again: false },
      start(2, 3),
    ]);
  });

  test("a handler's retryAfterMs replaces the policy's delay", () => {
    const lane = machine();
    deliver(lane, 1);
    expect(fail(lane, 1, { retryAfterMs: 7 })).toContainEqual({ type: "retry", seq: 1, delayMs: 7 });
  });

  test("onExhausted block: told once, then tried on at the longest delay; it ends when a try succeeds", () => {
    const lane = machine();
    deliver(lane, 1);
    fail(lane, 1);
    lane.step({ type: "tick", now: 1_000_000 });
    fail(lane, 2);
    lane.step({ type: "tick", now: 2_000_000 });
    expect(fail(lane, 3)).toContainEqual({ type: "blocked", seq: 1, delayMs: 1_000 });
    expect(lane.stuck()).toEqual([{ seq: 1, key: "k", misrouted: false }]);
    lane.step({ type: "tick", now: 3_000_000 });
    expect(fail(lane, 4)).toContainEqual({ type: "retry", seq: 1, delayMs: 1_000 });
    lane.step({ type: "tick", now: 4_000_000 });
    expect(lane.step({ type: "handled", run: 5 })).toEqual([{ type: "ack", seq: 1, again: false }]);
    expect(lane.stuck()).toEqual([]);
  });

  test("onExhausted drop: the event is given up and the next one starts", () => {
    const lane = machine({ onExhausted: "drop", retry: { ...retry, attempts: 1 } });
    deliver(lane, 1);
    deliver(lane, 2);
    expect(fail(lane, 1)).toEqual([{ type: "drop", seq: 1 }, start(2, 2)]);
  });

  test("a terminal failure skips the retries", () => {
    const dropping = machine({ onExhausted: "drop" });
    deliver(dropping, 1);
    expect(fail(dropping, 1, { terminal: true })).toEqual([{ type: "drop", seq: 1 }]);
    const blocking = machine();
    deliver(blocking, 1);
    expect(fail(blocking, 1, { terminal: true })).toContainEqual({ type: "blocked", seq: 1, delayMs: 1_000 });
  });

  test("one failing key leaves the others alone", () => {
    const lane = machine();
    deliver(lane, 1, "bad");
    fail(lane, 1);
    expect(deliver(lane, 2, "good")).toEqual([start(2, 2)]);
  });
});

describe("holds that are gone", () => {
  test("O2, O6: a lapsed event's handler is fenced, its result sends nothing, and its key waits until it has ended", () => {
    const lane = machine();
    deliver(lane, 1);
    expect(lane.step({ type: "lapsed", seq: 1 })).toEqual([{ type: "fence", seq: 1, run: 1 }]);
    expect(deliver(lane, 1)).toEqual([]);
    expect(lane.step({ type: "handled", run: 1 })).toEqual([start(1, 2)]);
  });

  test("O6: a fenced handler's failure is nobody's: no retry, no drop", () => {
    const lane = machine({ onExhausted: "drop", retry: { ...retry, attempts: 1 } });
    deliver(lane, 1);
    lane.step({ type: "lapsed", seq: 1 });
    expect(fail(lane, 1)).toEqual([]);
    expect(lane.held).toBe(0);
  });

  test("O6: an event that lapses while it waits for its retry is let go and not retried", () => {
    const lane = machine();
    deliver(lane, 1);
    fail(lane, 1);
    expect(lane.step({ type: "lapsed", seq: 1 })).toEqual([]);
    expect(lane.step({ type: "tick", now: 1e9 })).toEqual([]);
    expect(lane.held).toBe(0);
  });

  test("O2: a reset fences what runs and lets go of the rest; a busy key stays busy", () => {
    const lane = machine();
    deliver(lane, 1, "a");
    deliver(lane, 2, "a");
    expect(lane.step({ type: "reset", forget: false })).toEqual([{ type: "fence", seq: 1, run: 1 }]);
    expect(lane.held).toBe(0);
    expect(deliver(lane, 1, "a")).toEqual([]);
    expect(lane.step({ type: "handled", run: 1 })).toEqual([start(1, 2)]);
  });

  test("a reset remembers what was completed, unless the stream itself is another", () => {
    const lane = machine();
    deliver(lane, 1);
    lane.step({ type: "handled", run: 1 });
    lane.step({ type: "reset", forget: false });
    expect(deliver(lane, 1)).toEqual([{ type: "ack", seq: 1, again: true }]);
    lane.step({ type: "reset", forget: true });
    expect(deliver(lane, 1)).toEqual([start(1, 2)]);
  });

  test("O4: an event that the stream no longer holds is told lost and frees its lane; one that runs is left to its handler", () => {
    const lane = machine();
    deliver(lane, 1);
    deliver(lane, 2);
    expect(lane.step({ type: "gone", seq: 1 })).toEqual([]);
    fail(lane, 1);
    expect(lane.step({ type: "gone", seq: 1 })).toEqual([
      { type: "lost", seq: 1 },
      { type: "ack", seq: 1, again: true },
      start(2, 2),
    ]);
  });

  test("what was not held cannot lapse or go", () => {
    const lane = machine();
    expect(lane.step({ type: "lapsed", seq: 9 })).toEqual([]);
    expect(lane.step({ type: "gone", seq: 9 })).toEqual([]);
  });
});

describe("misrouted events", () => {
  test("O1: an event from a foreign publisher is told once and held: never started, never acked", () => {
    const lane = machine();
    expect(lane.step({ type: "misrouted", seq: 1, key: "", stamp: "s" })).toEqual([
      { type: "misrouted", seq: 1 },
    ]);
    expect(lane.step({ type: "misrouted", seq: 1, key: "", stamp: "s" })).toEqual([]);
    expect(lane.step({ type: "tick", now: 1e9 })).toEqual([]);
    expect(lane.stuck()).toEqual([{ seq: 1, key: "", misrouted: true }]);
  });

  test("removed from the stream, it frees its lane", () => {
    const lane = machine();
    lane.step({ type: "misrouted", seq: 1, key: "", stamp: "s" });
    expect(lane.step({ type: "gone", seq: 1 })).toEqual([
      { type: "lost", seq: 1 },
      { type: "ack", seq: 1, again: true },
    ]);
  });
});

describe("closing", () => {
  test("what waits is given back with the rest of its delay; what runs is finished and acked", () => {
    const lane = machine();
    deliver(lane, 1, "waits");
    fail(lane, 1);
    deliver(lane, 2, "runs");
    lane.step({ type: "misrouted", seq: 3, key: "", stamp: "s" });
    expect(lane.step({ type: "closing", now: 40 })).toEqual([
      { type: "release", seq: 1, delayMs: 60 },
      { type: "release", seq: 3, delayMs: 0 },
    ]);
    expect(lane.step({ type: "handled", run: 2 })).toEqual([{ type: "ack", seq: 2, again: false }]);
    expect(lane.held).toBe(0);
  });

  test("nothing starts any more: what is delivered is given back, what fails is given back with its delay", () => {
    const lane = machine();
    deliver(lane, 1, "a");
    lane.step({ type: "closing", now: 0 });
    expect(deliver(lane, 2, "b")).toEqual([{ type: "release", seq: 2, delayMs: 0 }]);
    expect(lane.step({ type: "misrouted", seq: 3, key: "", stamp: "s" })).toEqual([
      { type: "release", seq: 3, delayMs: 0 },
    ]);
    expect(fail(lane, 1)).toEqual([{ type: "release", seq: 1, delayMs: 100 }]);
    expect(lane.held).toBe(0);
  });

  test("O2: a redelivery of what still runs is not given back to another worker", () => {
    const lane = machine();
    deliver(lane, 1);
    lane.step({ type: "closing", now: 0 });
    expect(deliver(lane, 1)).toEqual([]);
    expect(lane.step({ type: "handled", run: 1 })).toEqual([{ type: "ack", seq: 1, again: false }]);
  });

  test("O2: what waits behind a fenced handler is given back when that has ended, not while it runs", () => {
    const lane = machine();
    deliver(lane, 1);
    lane.step({ type: "lapsed", seq: 1 });
    deliver(lane, 1);
    expect(lane.step({ type: "closing", now: 0 })).toEqual([]);
    expect(deliver(lane, 2)).toEqual([]);
    expect(lane.step({ type: "handled", run: 1 })).toEqual([
      { type: "release", seq: 1, delayMs: 0 },
      { type: "release", seq: 2, delayMs: 0 },
    ]);
    expect(lane.held).toBe(0);
  });

  test("a run that never began is given back, and does not count as a failure", () => {
    const lane = machine({ onExhausted: "drop", retry: { ...retry, attempts: 1 } });
    deliver(lane, 1);
    lane.step({ type: "closing", now: 0 });
    expect(lane.step({ type: "unstarted", run: 1 })).toEqual([{ type: "release", seq: 1, delayMs: 0 }]);
  });
});
