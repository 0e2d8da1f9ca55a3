import { describe, expect, test } from "vitest";
import { RetryableError, TerminalError } from "../domain/handler-errors.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { LaneScene } from "./lane-host.test-support.js";

describe("handling", () => {
  test("an event is handled, then acked; the next one of its key starts after", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    scene.deliver(2);
    await scene.settle();
    expect(scene.runs.map(({ seq }) => seq)).toEqual([1]);
    expect(scene.feed.sent).toEqual([]);
    await scene.end();
    expect(scene.feed.sent).toEqual(["ack 1"]);
    expect(scene.runs.map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test("R23: a failing event is retried after its delay, before its successor, and told", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    scene.deliver(2);
    await scene.settle();
    await scene.fail(new Error("down"));
    expect(scene.told).toMatchObject([
      { type: "retry", seq: 1, key: "k", error: { code: "HANDLER_FAILED" } },
    ]);
    await scene.clock.advance(199);
    expect(scene.runs).toHaveLength(1);
    await scene.clock.advance(1);
    expect(scene.last()).toMatchObject({ seq: 1, attempt: 2 });
    await scene.end();
    expect(scene.last().seq).toBe(2);
  });

  test("a TerminalError drops the event where told so, with the code as the reason", async () => {
    const scene = new LaneScene({ onExhausted: "drop" });
    scene.deliver(1);
    await scene.settle();
    await scene.fail(new TerminalError("never"));
    expect(scene.feed.sent).toEqual(["drop 1 TERMINAL"]);
    expect(scene.told).toMatchObject([{ type: "dropped", key: "k", seq: 1, error: { code: "TERMINAL" } }]);
  });

  test("onExhausted block is told once, names the key, and stays visible while it is tried on", async () => {
    const scene = new LaneScene({ retry: { attempts: 1, initialDelayMs: 10, maxDelayMs: 10, jitter: 0 } });
    scene.deliver(1);
    await scene.settle();
    await scene.fail("x");
    await scene.clock.advance(10);
    await scene.fail("x");
    expect(scene.types()).toEqual(["blocked", "retry"]);
    expect(scene.runner.stuck()).toEqual([{ seq: 1, key: "k", misrouted: false }]);
  });

  test("a RetryableError that names an absurd time waits a day; it does not make a hot loop", async () => {
    const scene = new LaneScene();
    scene.feed.confirms = true;
    scene.deliver(1);
    await scene.settle();
    await scene.fail(new RetryableError("later", { retryAfterMs: Number.MAX_SAFE_INTEGER }));
    await scene.clock.advance(86_399_999);
    expect(scene.runs).toHaveLength(1);
  });

  test("an event of a foreign publisher is told, kept alive and not handled; removed, it is lost and the lane free", async () => {
    const scene = new LaneScene();
    scene.deliver(1, "k", { subject: "orders.0.%41.t" });
    await scene.settle();
    expect(scene.told).toMatchObject([{ type: "misrouted", seq: 1, error: { code: "MISROUTED" } }]);
    await scene.clock.advance(2_500);
    scene.tick();
    expect(scene.feed.sent).toEqual(["working 1"]);
    scene.runner.gone(1);
    expect(scene.types()).toEqual(["misrouted", "lost"]);
    expect(scene.feed.sent).toEqual(["working 1", "ack 1"]);
    expect(scene.runs).toEqual([]);
  });
});

describe("slots", () => {
  test("an event waits for a slot; waiting for a retry holds none", async () => {
    const scene = new LaneScene({ concurrency: 1 });
    scene.deliver(1, "a");
    scene.deliver(2, "b");
    await scene.settle();
    expect(scene.runs).toHaveLength(1);
    await scene.fail("down");
    expect(scene.last().key).toBe("b");
    expect(scene.slots.used).toBe(1);
    await scene.end();
    expect(scene.slots.used).toBe(0);
  });

  test("O6: a hold that lapsed while the event waited for its slot: no handler starts, the slot goes on", async () => {
    const scene = new LaneScene({ concurrency: 1 });
    scene.deliver(1, "a");
    scene.deliver(2, "b");
    await scene.settle();
    scene.clock.freeze(60_000);
    await scene.end();
    expect(scene.runs).toHaveLength(1);
    expect(scene.feed.sent).toEqual([]);
    expect(scene.slots.used).toBe(0);
    expect(scene.runner.inFlight).toBe(0);
  });
});

describe("what was settled", () => {
  test("comes again: acked again, not run again", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    await scene.end();
    scene.deliver(1, "k", { deliveries: 2 });
    await scene.settle();
    expect(scene.feed.sent).toEqual(["ack 1", "ack 1"]);
    expect(scene.runs).toHaveLength(1);
  });

  test("is answered again once the same server has been verified, as long as the event is ours", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.feed.connected = false;
    await scene.end();
    scene.feed.connected = true;
    scene.runner.holdBack();
    expect(scene.feed.sent).toEqual([]);
    scene.runner.letGo(true);
    expect(scene.feed.sent).toEqual(["ack 1"]);
    scene.clock.freeze(20_000);
    scene.runner.holdBack();
    scene.runner.letGo(true);
    expect(scene.feed.sent).toEqual(["ack 1"]);
  });

  test("O2: is not answered again to another server process, which may have given the event to somebody else", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.feed.connected = false;
    await scene.end();
    scene.feed.connected = true;
    scene.runner.holdBack();
    scene.runner.letGo(false);
    expect(scene.feed.sent).toEqual([]);
  });

  test("held back: what ends meanwhile is answered after, once; letGo without it sends nothing", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.runner.letGo(true);
    scene.runner.holdBack();
    await scene.end();
    expect(scene.feed.sent).toEqual([]);
    scene.runner.letGo(false);
    expect(scene.feed.sent).toEqual(["ack 1"]);
    scene.runner.letGo(false);
    expect(scene.feed.sent).toEqual(["ack 1"]);
  });

  test.each(["holdBack", "beginDrain"] as const)(
    "O2, O3: an answer that was to go out soon is kept back from %s on",
    async (method) => {
      const scene = new LaneScene();
      scene.sendsSoon = true;
      scene.deliver(1);
      await scene.settle();
      await scene.end();
      scene.runner[method]();
      for (const answer of scene.soon.splice(0)) answer.send(scene.clock.now(), scene.clock.wall());
      expect(scene.feed.sent).toEqual([]);
      if (method === "holdBack") scene.runner.letGo(false);
      else scene.runner.finishDrain();
      expect(scene.feed.sent).toEqual([method === "holdBack" ? "ack 1" : "ack 1 confirmed"]);
    },
  );

  test("O6: an answer that was to go out soon is not sent to what was reset meanwhile", async () => {
    const scene = new LaneScene();
    scene.sendsSoon = true;
    scene.deliver(1);
    await scene.settle();
    await scene.end();
    scene.runner.reset(false);
    for (const answer of scene.soon.splice(0)) answer.send(scene.clock.now(), scene.clock.wall());
    expect(scene.feed.sent).toEqual([]);
  });

  test("tellOverlap names every handler that runs, and only those", async () => {
    const scene = new LaneScene({ concurrency: 1 });
    scene.deliver(1, "runs");
    scene.deliver(2, "waits");
    await scene.settle();
    scene.runner.tellOverlap(new LanekeeperError("FENCED", "another process"));
    expect(scene.told).toMatchObject([
      { type: "overlap-possible", key: "runs", seq: 1, lane: 0, error: { code: "FENCED" } },
    ]);
    expect(scene.last().signal.aborted).toBe(false);
  });

  test("settledBelow: what a delivery proves, and one more once it is settled", async () => {
    const scene = new LaneScene();
    expect(scene.runner.settledBelow).toBe(0);
    scene.deliver(7);
    await scene.settle();
    expect(scene.runner.settledBelow).toBe(7);
    await scene.end();
    expect(scene.runner.settledBelow).toBe(8);
    scene.runner.reset(false);
    expect(scene.runner.settledBelow).toBe(8);
    scene.runner.reset(true);
    expect(scene.runner.settledBelow).toBe(0);
  });

  test("a reset takes events in hand away: their handlers are fenced and their ends send nothing", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.runner.reset(false);
    expect(scene.last().signal.reason).toMatchObject({ code: "FENCED" });
    await scene.end();
    scene.runner.holdBack();
    scene.runner.letGo(true);
    expect(scene.feed.sent).toEqual([]);
  });

  test("O3: an event said to be gone while it is tried again is acked by its handler's end all the same", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.runner.gone(1);
    await scene.end();
    expect(scene.feed.sent).toEqual(["ack 1"]);
  });
});

describe("closing", () => {
  test("O3: answers are kept back while pulls are open and go out, confirmed, when they have ended", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.runner.beginDrain();
    await scene.end();
    expect(scene.feed.sent).toEqual([]);
    scene.runner.finishDrain();
    expect(scene.feed.sent).toEqual(["ack 1 confirmed"]);
    expect(await scene.runner.acksConfirmed()).toBe(true);
  });

  test("answers kept back for a consumer that is gone are not sent to its successor", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.runner.beginDrain();
    await scene.end();
    scene.runner.reset(true);
    scene.runner.finishDrain();
    expect(scene.feed.sent).toEqual([]);
  });

  test("R36: what runs is finished and acked, what waits is given back at once", async () => {
    const scene = new LaneScene({ concurrency: 1 });
    scene.deliver(1, "runs");
    scene.deliver(2, "waits for a slot");
    await scene.settle();
    scene.runner.finishDrain();
    expect(scene.feed.sent).toEqual(["release 2 after 0"]);
    await scene.end();
    expect(scene.feed.sent).toEqual(["release 2 after 0", "ack 1 confirmed"]);
    expect(scene.runs).toHaveLength(1);
    expect(scene.runner.running).toBe(0);
    expect(scene.slots.used).toBe(0);
  });

  test("an event that lapsed while it waited for a slot does not trip the closing", async () => {
    const scene = new LaneScene({ concurrency: 1 });
    scene.feed.confirms = false;
    scene.deliver(1, "runs");
    scene.deliver(2, "waits");
    await scene.settle();
    scene.clock.freeze(20_000);
    scene.tick();
    scene.runner.finishDrain();
    await scene.end();
    expect(scene.slots.used).toBe(0);
    expect(scene.feed.sent).toEqual([]);
  });

  test("a handler that fails meanwhile gives its event back with the delay of its retry", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.runner.finishDrain();
    await scene.fail(new LanekeeperError("FENCED", "whatever is thrown"));
    expect(scene.feed.sent).toEqual(["release 1 after 200"]);
  });

  test("when the grace ends, signals are aborted with CLOSING", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.runner.finishDrain();
    scene.runner.abortRuns("CLOSING", "the grace is over");
    expect(scene.last().signal.reason).toMatchObject({ code: "CLOSING", message: "the grace is over" });
  });

  test("ended() and acksConfirmed() resolve when handlers have ended and the server has answered for every ack", async () => {
    const scene = new LaneScene();
    scene.feed.confirms = false;
    scene.deliver(1);
    await scene.settle();
    let over = false;
    const ended = scene.runner.ended().then(() => {
      over = true;
    });
    scene.runner.beginDrain();
    scene.runner.finishDrain();
    await scene.settle();
    expect(over).toBe(false);
    await scene.end();
    await ended;
    expect(await scene.runner.acksConfirmed()).toBe(false);
  });

  test("restart goes on with another consumer: what is delivered runs and is acked again", async () => {
    const scene = new LaneScene();
    scene.runner.beginDrain();
    scene.runner.finishDrain();
    scene.deliver(1);
    await scene.settle();
    expect(scene.runs).toEqual([]);
    scene.runner.restart("lk-g-g1-0-e7");
    expect(scene.runner.consumer).toBe("lk-g-g1-0-e7");
    scene.deliver(2);
    await scene.settle();
    await scene.end();
    expect(scene.feed.sent.at(-1)).toBe("ack 2");
  });

  test("stop() leaves no timer behind", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    await scene.fail("down");
    expect(scene.clock.timers).toBe(1);
    scene.runner.stop();
    expect(scene.clock.timers).toBe(0);
  });
});
