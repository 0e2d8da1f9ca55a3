import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, test } from "vitest";
import { LaneScene } from "./lane-host.test-support.js";

test("R22: long handlers that fill a lane do not hold up the acks of its quick keys", async () => {
  const scene = new LaneScene({ assignment: "owned", maxAckPending: 4 });
  for (const [index, key] of ["a", "b", "c", "d"].entries()) scene.deliver(index + 1, key);
  await scene.settle();
  await scene.clock.advance(1_000);
  scene.tick();
  await scene.end();
  expect(scene.last().key).toBe("d");
  expect(scene.urgent).toEqual([true]);
});

describe("holds (O6)", () => {
  test("O6: a hold that lapses between the slot and the handler's turn: the handler is not called", async () => {
    const scene = new LaneScene();
    scene.putsOff = true;
    scene.deliver(1);
    await scene.settle();
    expect([scene.runs.length, scene.turns.length]).toEqual([0, 1]);
    scene.clock.freeze(60_000);
    scene.turns[0]?.take(true);
    expect(scene.runs).toEqual([]);
    expect([scene.slots.used, scene.runner.running, scene.feed.sent]).toEqual([0, 0, []]);
  });

  test("R18: what is found to have lapsed, or came too late, has all the rest looked at before the next tick", async () => {
    const scene = new LaneScene({ concurrency: 1 });
    scene.deliver(1, "a");
    scene.deliver(2, "b");
    await scene.settle();
    expect(scene.looks).toBe(0);
    scene.clock.freeze(60_000);
    await scene.end();
    expect(scene.looks).toBeGreaterThan(0);

    const late = new LaneScene();
    late.pinged = false;
    late.clock.freeze(60_000);
    late.deliver(1);
    expect(late.told).toMatchObject([{ type: "fenced", seq: 1 }]);
    expect(late.looks).toBe(1);
  });

  test("R16: a long handler's event is kept alive, well inside ackWait", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    for (let second = 0; second < 30; second++) {
      await scene.clock.advance(1_000);
      scene.tick();
    }
    expect(scene.feed.sent.length).toBeGreaterThanOrEqual(10);
    await scene.end();
    expect(scene.feed.sent.at(-1)).toBe("ack 1");
    expect(scene.told).toEqual([]);
  });

  test("unconfirmed for ackWait less the margin: the handler is fenced and nothing is sent for it any more", async () => {
    const scene = new LaneScene();
    scene.feed.confirms = false;
    scene.deliver(1);
    await scene.settle();
    await scene.clock.advance(8_499);
    scene.tick();
    expect(scene.last().signal.aborted).toBe(false);
    await scene.clock.advance(1);
    scene.tick();
    expect(scene.last().signal.reason).toMatchObject({ code: "FENCED" });
    expect(scene.types()).toEqual(["fenced", "overlap-possible"]);
    const before = scene.feed.sent.length;
    await scene.end();
    expect(scene.feed.sent).toHaveLength(before);
  });

  test("R18: after a freeze the handler's end comes before any tick: no ack is sent", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.clock.freeze(20_000);
    await scene.end();
    expect(scene.feed.sent).toEqual([]);
    expect(scene.runner.inFlight).toBe(0);
  });

  test("a suspended machine, whose monotonic clock stood still, is fenced by the wall clock", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.clock.suspend(20_000);
    scene.tick();
    expect(scene.last().signal.aborted).toBe(true);
  });

  test("a delivery that was long on its way is left to come again", async () => {
    const scene = new LaneScene();
    scene.proof();
    scene.pinged = false;
    scene.clock.freeze(9_000);
    scene.deliver(1);
    await scene.settle();
    expect(scene.runs).toEqual([]);
    expect(scene.types()).toEqual(["fenced"]);
  });

  test("O2: the redelivery of a fenced event waits until its old handler has ended", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.clock.freeze(20_000);
    scene.tick();
    scene.deliver(1, "k", { deliveries: 2 });
    await scene.settle();
    expect(scene.runs).toHaveLength(1);
    await scene.end(scene.runs[0]);
    expect(scene.last()).toMatchObject({ seq: 1, attempt: 2 });
    expect(scene.last().token).toBeGreaterThan(scene.runs[0]?.token as number);
  });

  test("O6: data that took longer to check than the hold lasts: the handler is not called", async () => {
    const checks: (() => void)[] = [];
    const schema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) =>
          new Promise<{ value: unknown }>((resolve) => checks.push(() => resolve({ value }))),
      },
    } as StandardSchemaV1<unknown, unknown>;
    const scene = new LaneScene({ schema });
    scene.deliver(1);
    await scene.settle();
    scene.clock.freeze(20_000);
    checks[0]?.();
    await scene.settle();
    expect(scene.runs).toEqual([]);
    expect(scene.feed.sent).toEqual([]);
    expect(scene.slots.used).toBe(0);
    scene.deliver(1, "k", { deliveries: 2 });
    checks[1]?.();
    await scene.settle();
    expect(scene.runs).toHaveLength(1);
  });

  test("a fenced handler that ignores its signal holds its key visibly", async () => {
    const scene = new LaneScene();
    scene.deliver(1);
    await scene.settle();
    scene.clock.freeze(20_000);
    scene.tick();
    await scene.clock.advance(1_000);
    scene.tick();
    scene.tick();
    expect(scene.types()).toEqual(["fenced", "overlap-possible", "handler-stuck"]);
    expect(scene.told.at(-1)).toMatchObject({ key: "k", seq: 1, error: { code: "HANDLER_STUCK" } });
  });
});
