import { expect, test } from "vitest";
import { Lease, leaseRules } from "./lease.js";

const rules = leaseRules(4_000);

test("several beats and an answer that is late fit between a beat and the moment a member stops", () => {
  for (const leaseMs of [1_000, 5_000, 12_000, 600_000]) {
    const { beatMs, fenceMs } = leaseRules(leaseMs);
    expect(fenceMs).toBeLessThan(leaseMs);
    expect(beatMs * 4).toBeLessThan(fenceMs);
  }
});

test("O6: nothing holds before the first beat is confirmed", () => {
  expect(new Lease(rules).lapsed(0, 0)).toBe(true);
});

test("O6: the lease counts from the send time of the newest confirmed beat, whenever the answer came", () => {
  const lease = new Lease(rules);
  lease.confirmed(1_000, 1_000);
  expect(lease.lapsed(1_000 + rules.fenceMs - 1, 1_000)).toBe(false);
  expect(lease.lapsed(1_000 + rules.fenceMs, 1_000)).toBe(true);
  lease.confirmed(500, 500);
  expect(lease.lapsed(1_000 + rules.fenceMs - 1, 1_000)).toBe(false);
});

test("O6: a jump of either clock alone ends it: a suspended machine shows in one of them only", () => {
  const lease = new Lease(rules);
  lease.confirmed(0, 0);
  expect(lease.lapsed(0, rules.fenceMs)).toBe(true);
  expect(lease.lapsed(rules.fenceMs, 0)).toBe(true);
  expect(lease.lapsed(0, 0)).toBe(false);
});

test("O6: once ended, only another beat makes it hold again", () => {
  const lease = new Lease(rules);
  lease.confirmed(0, 0);
  lease.end();
  expect(lease.lapsed(0, 0)).toBe(true);
  lease.confirmed(10, 10);
  expect(lease.lapsed(10, 10)).toBe(false);
});
