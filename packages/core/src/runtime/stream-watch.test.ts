import { layoutConfig } from "@lanekeeper/partitioner";
import { expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { StreamPort, StreamSnapshot } from "./stream-port.js";
import { StreamWatch } from "./stream-watch.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

const layout = { subject: "o", generation: 1, lanes: 2, hash: "murmur3", mapping: "publisher" } as const;

function scene() {
  const clock = new VirtualClock();
  const { subjects, metadata } = layoutConfig(layout);
  const good = { subjects, metadata, transform: undefined } as unknown as StreamSnapshot;
  const state: { answer: StreamSnapshot | Error; reads: number } = { answer: good, reads: 0 };
  const port = {
    async read() {
      state.reads++;
      if (state.answer instanceof Error) throw state.answer;
      return state.answer;
    },
  } as unknown as StreamPort;
  const watch = new StreamWatch(port, layout, clock, { intervalMs: 4_000, faultIntervalMs: 1_000 });
  const seen: string[] = [];
  return { clock, good, state, watch, seen, observe: () => watch.observe(({ type }) => seen.push(type)) };
}

test("looks every interval as long as somebody observes, and not otherwise", async () => {
  const { clock, state, seen, observe } = scene();
  await clock.advance(60_000);
  expect(state.reads).toBe(0);
  const stop = observe();
  await clock.advance(12_000);
  expect(seen).toEqual(["ok", "ok", "ok"]);
  stop();
  await clock.advance(60_000);
  expect(state.reads).toBe(3);
  expect(clock.timers).toBe(0);
});

test("R40: while something is wrong it looks more often, and says what it is", async () => {
  const { clock, good, state, seen, observe } = scene();
  observe();
  state.answer = new LanekeeperError("STREAM_NOT_FOUND", "gone");
  await clock.advance(5_000);
  state.answer = new LanekeeperError("REQUEST_TIMEOUT", "slow");
  await clock.advance(1_000);
  state.answer = new TypeError("whatever");
  await clock.advance(1_000);
  state.answer = { ...good, metadata: {} };
  await clock.advance(1_000);
  state.answer = good;
  await clock.advance(1_000);
  expect(seen).toEqual(["missing", "missing", "unreadable", "unreadable", "layout-fault", "ok"]);
});

test("concurrent looks share one request and never reject; errors that are not ours are wrapped", async () => {
  const { state, watch } = scene();
  const [one, other] = await Promise.all([watch.look(), watch.look()]);
  expect(one).toBe(other);
  expect(state.reads).toBe(1);
  state.answer = new TypeError("whatever");
  expect(await watch.look()).toMatchObject({ type: "unreadable", error: { code: "API_ERROR" } });
});
