import { expect, test } from "vitest";
import type { ConnectionPort } from "./connection-port.js";
import { Health } from "./health.js";
import { Liveness } from "./liveness.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

const tickMs = 250;

function scene() {
  const clock = new VirtualClock();
  const told: string[] = [];
  const pings: { answer(): void; fail(): void }[] = [];
  const state = { connected: true };
  const connection = {
    isConnected: () => state.connected,
    ping: () =>
      new Promise<void>((resolve, reject) =>
        pings.push({ answer: resolve, fail: () => reject(new Error("closed")) }),
      ),
  } as ConnectionPort;
  const health = new Health(clock, ({ type }) => told.push(type));
  const proof = { at: clock.now(), wall: clock.wall() };
  const notify = ({ type }: { type: string }) => void told.push(type);
  const liveness = new Liveness(connection, clock, health, notify, tickMs, 1_000, proof);
  const ticks = async (count: number) => {
    for (let index = 0; index < count; index++) {
      await clock.advance(tickMs);
      liveness.tick();
    }
  };
  return { clock, told, pings, state, health, liveness, ticks };
}

test("O6: the proof is a ping's send time, and only once it is answered", async () => {
  const { clock, pings, liveness, ticks } = scene();
  const first = liveness.proof;
  await ticks(4);
  const sentAt = clock.now();
  expect(pings).toHaveLength(1);
  await ticks(2);
  expect(liveness.proof).toEqual(first);
  pings[0]?.answer();
  await clock.advance(0);
  expect(liveness.proof.at).toBe(sentAt);
});

test("one ping is open at a time; unanswered for 5 s the server counts as unresponsive, until it answers", async () => {
  const { clock, pings, health, ticks } = scene();
  await ticks(4 + 19);
  expect(pings).toHaveLength(1);
  expect(health.error).toBeUndefined();
  await ticks(1);
  expect(health.error?.code).toBe("SERVER_UNRESPONSIVE");
  pings[0]?.answer();
  await clock.advance(0);
  expect(health.error).toBeUndefined();
});

test("O6: a ping of the old connection proves nothing after a reconnect", async () => {
  const { clock, pings, liveness, ticks } = scene();
  await ticks(4);
  const before = liveness.proof;
  liveness.reconnected();
  pings[0]?.answer();
  await clock.advance(0);
  expect(liveness.proof).toEqual(before);
  pings[1]?.answer();
  await clock.advance(0);
  expect(liveness.proof.at).toBe(clock.now());
});

test("a ping that fails with its connection is no crash, and while disconnected none is sent", async () => {
  const { pings, state, ticks } = scene();
  await ticks(4);
  pings[0]?.fail();
  state.connected = false;
  await ticks(40);
  expect(pings).toHaveLength(1);
});

test("a blocked event loop is told, shows as lag and fades; the server is not blamed for it", async () => {
  const { clock, told, health, liveness, ticks } = scene();
  await ticks(4);
  clock.freeze(8_000);
  expect(liveness.lagMs).toBe(7_750);
  liveness.tick();
  expect(told).toEqual(["loop-blocked"]);
  expect(health.error).toBeUndefined();
  expect(liveness.lagMs).toBe(7_750);
  await ticks(3);
  expect(liveness.lagMs).toBeLessThan(5_000);
});
