import { describe, expect, test } from "vitest";
import { Lease, leaseRules } from "../domain/lease.js";
import { Isolation, SuspectTurns } from "./isolation.js";
import type { Delivery } from "./lane-feed-port.js";
import { OwnedPolicy } from "./owned-policy.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

const consumer = "lk-g-g1-0-e9";

function scene() {
  const clock = new VirtualClock();
  const lease = new Lease(leaseRules(5_000));
  lease.confirmed(clock.now(), clock.wall());
  const marks: (number | undefined)[] = [];
  const isolation = new Isolation(new SuspectTurns(), async (seq) => {
    marks.push(seq);
    return true;
  });
  let breaks = 0;
  const broken = () => {
    breaks++;
  };
  const policy = new OwnedPolicy(() => lease, clock, isolation, broken);
  const begin = (deliveries = 0, poison: number[] = []) =>
    policy.begin({ consumer, epoch: 9, deliveries, ackWaitMs: 30_000, poison });
  return { clock, lease, isolation, marks, policy, begin, breaks: () => breaks };
}

const delivery = (deliverySeq: number, of = consumer) => ({ consumer: of, deliverySeq }) as Delivery;

describe("deliveries (O5)", () => {
  test("are accepted as an unbroken run, from where it begins", () => {
    const { policy, begin, breaks } = scene();
    begin(4);
    expect([5, 6, 7].map((deliverySeq) => policy.accepts(delivery(deliverySeq)))).toEqual([true, true, true]);
    expect(policy.deliveries).toBe(7);
    expect(breaks()).toBe(0);
  });

  test.each([
    ["a gap", 7],
    ["a step back", 4],
    ["one that comes twice", 5],
  ])("%s breaks the run: told once, and nothing after it is accepted", (_, deliverySeq) => {
    const { policy, begin, breaks } = scene();
    begin(4);
    policy.accepts(delivery(5));
    expect(policy.accepts(delivery(deliverySeq))).toBe(false);
    expect(policy.accepts(delivery(6))).toBe(false);
    expect(breaks()).toBe(1);
    expect(policy.deliveries).toBe(0);
  });

  test("an event let go of unhandled breaks the run, too; without a run there is nothing to break", () => {
    const { policy, begin, breaks } = scene();
    policy.letGo();
    expect(breaks()).toBe(0);
    begin();
    policy.letGo();
    policy.letGo();
    expect(breaks()).toBe(1);
    expect(policy.accepts(delivery(1))).toBe(false);
  });

  test("those of a consumer before, and any outside a run, are not looked at and break nothing", () => {
    const { policy, begin, breaks } = scene();
    expect(policy.accepts(delivery(1))).toBe(false);
    begin();
    expect(policy.accepts(delivery(1, "lk-g-g1-0-e8"))).toBe(false);
    expect(policy.accepts(delivery(1))).toBe(true);
    policy.end();
    expect(policy.accepts(delivery(2))).toBe(false);
    expect(breaks()).toBe(0);
  });
});

describe("holds (O6)", () => {
  test("are the lease's: all lapse together, on either clock, and hold again with the next confirmed beat", () => {
    const { clock, lease, policy, begin } = scene();
    begin();
    const hold = policy.newHold();
    const lapsed = () => hold.lapsed(clock.now(), clock.wall());
    clock.freeze(3_999);
    expect(lapsed()).toBe(false);
    clock.freeze(1);
    expect(lapsed()).toBe(true);
    hold.confirmed(clock.now(), clock.wall());
    expect(lapsed()).toBe(true);
    lease.confirmed(clock.now(), clock.wall());
    expect(lapsed()).toBe(false);
    clock.suspend(4_000);
    expect(lapsed()).toBe(true);
    expect(policy.lapses).toBe("lane");
  });

  test("in-progress goes out four times in an ackWait, whether or not it is confirmed", () => {
    const { clock, policy, begin } = scene();
    begin();
    const hold = policy.newHold();
    expect(hold.wantsWorking(clock.now() + 7_499)).toBe(false);
    expect(hold.wantsWorking(clock.now() + 7_500)).toBe(true);
    hold.workingSent(clock.now() + 7_500);
    expect(hold.wantsWorking(clock.now() + 14_999)).toBe(false);
    expect(hold.wantsWorking(clock.now() + 15_000)).toBe(true);
  });
});

test("the fence is the claim's epoch: one frozen object per claim and incarnation, whatever is delivered", () => {
  const { policy, begin } = scene();
  begin();
  const fence = policy.fence(delivery(1), "i");
  expect(fence).toEqual({ token: 9, incarnation: "i" });
  expect(Object.isFrozen(fence)).toBe(true);
  expect(policy.fence(delivery(2), "i")).toBe(fence);
  expect(policy.fence(delivery(3), "rewound")).toEqual({ token: 9, incarnation: "rewound" });
  policy.begin({ consumer, epoch: 12, deliveries: 0, ackWaitMs: 30_000, poison: [] });
  expect(policy.fence(delivery(1), "rewound").token).toBe(12);
});

test("R26: poison is what the claim says, of this run only; suspects wait for their turn", async () => {
  const { isolation, marks, policy, begin } = scene();
  begin(0, [5]);
  expect([4, 5].map((seq) => policy.isPoison(seq))).toEqual([false, true]);
  begin();
  expect(policy.isPoison(5)).toBe(false);
  isolation.begin([6]);
  const begun: number[] = [];
  for (const seq of [6, 7]) policy.beforeStart(seq, () => void begun.push(seq));
  expect(begun).toEqual([7]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun).toEqual([7, 6]);
  policy.afterEnd(6, true);
  expect(marks).toEqual([6, undefined]);
});
