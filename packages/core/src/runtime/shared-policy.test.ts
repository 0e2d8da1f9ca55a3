import { expect, test } from "vitest";
import { sharedFenceToken } from "../domain/fence-token.js";
import { holdRules } from "../domain/hold.js";
import { SharedPolicy } from "./shared-policy.js";

test("O6: a hold counts from the newest proof, not from when the event arrived", () => {
  const proof = { at: 1_000, wall: 51_000 };
  const policy = new SharedPolicy(holdRules(10_000), () => proof);
  const hold = policy.newHold();
  expect(hold.lapsed(9_499, 59_499)).toBe(false);
  expect(hold.lapsed(9_500, 59_500)).toBe(true);
  proof.at = 6_000;
  proof.wall = 56_000;
  expect(policy.newHold().lapsed(9_500, 59_500)).toBe(false);
});

test("O2: changed rules are those of the next holds", () => {
  const policy = new SharedPolicy(holdRules(10_000), () => ({ at: 0, wall: 0 }));
  const before = policy.newHold();
  policy.rules = holdRules(1_000);
  expect(before.lapsed(700, 700)).toBe(false);
  expect(policy.newHold().lapsed(700, 700)).toBe(true);
});

test("the fence is made of sequence and delivery count, frozen, and carries the incarnation", () => {
  const policy = new SharedPolicy(holdRules(10_000), () => ({ at: 0, wall: 0 }));
  const fence = policy.fence({ seq: 7, deliveries: 2 }, "i");
  expect(fence).toEqual({ token: sharedFenceToken(7, 2), incarnation: "i" });
  expect(Object.isFrozen(fence)).toBe(true);
  expect(policy.fence({ seq: 7, deliveries: 3 }, "i").token).toBeGreaterThan(fence.token);
});

test("a lapse is one event's own, what is given back is told, gaps in deliveries say nothing, all starts at once", () => {
  const policy = new SharedPolicy(holdRules(10_000), () => ({ at: 0, wall: 0 }));
  expect(policy).toMatchObject({ lapses: "event", tellsReleases: true });
  expect([policy.accepts(), policy.isPoison()]).toEqual([true, false]);
  let begun = 0;
  policy.beforeStart(1, () => {
    begun++;
  });
  expect(begun).toBe(1);
});
