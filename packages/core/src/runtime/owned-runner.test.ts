import { expect, test } from "vitest";
import { Lease, leaseRules } from "../domain/lease.js";
import { Isolation, SuspectTurns } from "./isolation.js";
import { LaneScene } from "./lane-host.test-support.js";
import { LaneRunner } from "./lane-runner.js";
import { OwnedPolicy } from "./owned-policy.js";

const consumer = "lk-g-g1-0-e9";

/** A runner of an owned lane whose lease ends and holds again as the test says. */
function scene() {
  const lane = new LaneScene({ assignment: "owned", maxAckPending: 8 });
  const { clock } = lane;
  const lease = new Lease(leaseRules(5_000));
  const beat = () => lease.confirmed(clock.now(), clock.wall());
  let breaks = 0;
  const isolation = new Isolation(new SuspectTurns(), async () => true);
  const policy = new OwnedPolicy(
    () => lease,
    clock,
    isolation,
    () => {
      breaks++;
    },
  );
  const runner = new LaneRunner(0, policy, lane.host, consumer);
  beat();
  policy.begin({ consumer, epoch: 9, deliveries: 0, ackWaitMs: 30_000, poison: [] });
  const deliver = (seq: number, key = "k") => lane.deliver(seq, key, {}, runner);
  return { lane, clock, beat, runner, deliver, breaks: () => breaks };
}

test("O1, O5: an event that arrives in a lapse of the lease breaks the run, though a beat is confirmed before any tick", async () => {
  const { lane, clock, beat, deliver, breaks } = scene();
  clock.freeze(4_500);
  deliver(1);
  beat();
  deliver(2);
  await lane.settle();
  expect(breaks()).toBe(1);
  expect(lane.runs).toEqual([]);
});

test("O1, O5, O6: a start that finds the lease over lets go of the whole lane and breaks the run", async () => {
  const { lane, clock, beat, runner, deliver, breaks } = scene();
  deliver(1, "a");
  deliver(2, "b");
  deliver(3, "a");
  await lane.settle();
  const [first] = lane.runs;
  if (first === undefined) throw new Error("nothing has started");
  clock.freeze(4_500);
  await lane.end(first);
  beat();
  deliver(4, "a");
  await lane.settle();
  expect(breaks()).toBe(1);
  expect(runner.inFlight).toBe(0);
  expect(lane.runs.map(({ seq }) => seq)).toEqual([1, 2]);
  // What was handled in the lapse is not acked: whoever owns the lane now runs it again.
  expect(lane.feed.sent).toEqual([]);
});
