import { expect, test } from "vitest";
import { holdRules } from "../domain/hold.js";
import { pause } from "./clock.js";
import type { ConnectionPort } from "./connection-port.js";
import { Health } from "./health.js";
import { LaneScene } from "./lane-host.test-support.js";
import { LaneRunner } from "./lane-runner.js";
import { Liveness, pingInterval } from "./liveness.js";
import { SharedPolicy } from "./shared-policy.js";

/** The longest between two ticks of a worker; with a short ackWait there are more, and proofs are newer. */
const tickMs = 250;

/** A lane whose proofs are a liveness's own pings, each answered after `roundTripMs`. */
function livelyLane(ackWaitMs: number, pingMs: number, roundTripMs: number) {
  const scene = new LaneScene({ ackWaitMs });
  const { clock, host } = scene;
  const connection = {
    isConnected: () => true,
    ping: () => pause(clock, roundTripMs),
  } as unknown as ConnectionPort;
  const health = new Health(clock, () => {});
  const proof = { at: clock.now(), wall: clock.wall() };
  const liveness = new Liveness(connection, clock, health, host.notify, tickMs, pingMs, proof);
  const policy = new SharedPolicy(holdRules(ackWaitMs), () => liveness.proof);
  const runner = new LaneRunner(0, policy, host, "lk-g-g1-0");
  const tick = () => {
    clock.after(tickMs, tick);
    liveness.tick();
    runner.tick(clock.now(), clock.wall());
  };
  clock.after(tickMs, tick);
  return { scene, runner };
}

/** One delivery for every millisecond of the time between two pings, each handled at once. */
async function deliverAtEveryPhase({ scene, runner }: ReturnType<typeof livelyLane>): Promise<number> {
  const phases = 1_000;
  for (let seq = 1; seq <= phases; seq++) {
    // Pings come with ticks, at most four ticks apart: 251 and 1,000 have no common factor.
    await scene.clock.advance(tickMs + 1);
    scene.deliver(seq, "k", {}, runner);
    scene.runs.at(-1)?.resolve();
    await scene.settle();
  }
  return phases;
}

test.each([
  [1_000, 1],
  [1_000, 200],
  [4_000, 200],
  [30_000, 200],
])(
  "O6: with an ackWait of %i ms and a round trip of %i ms a fresh delivery is never let go as stale, whenever it comes between two pings",
  async (ackWaitMs, roundTripMs) => {
    const lane = livelyLane(ackWaitMs, pingInterval(ackWaitMs), roundTripMs);
    const count = await deliverAtEveryPhase(lane);
    expect(lane.scene.told).toEqual([]);
    expect(lane.scene.feed.sent).toEqual(Array.from({ length: count }, (_, n) => `ack ${n + 1}`));
  },
);

test("O6: pings as far apart as the shortest ackWait let some fresh deliveries go as stale", async () => {
  const lane = livelyLane(1_000, 1_000, 1);
  await deliverAtEveryPhase(lane);
  expect(new Set(lane.scene.types())).toEqual(new Set(["fenced"]));
});
