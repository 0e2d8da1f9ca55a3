import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Hold, holdRules } from "./hold.js";

const wall = 5_000_000;

describe("Hold (O6)", () => {
  test("lapses the margin before ackWait, on either clock", () => {
    const rules = holdRules(30_000);
    const hold = new Hold(rules, 0, wall);
    expect(hold.lapsed(28_499, wall + 28_499)).toBe(false);
    expect(hold.lapsed(28_500, wall)).toBe(true);
    expect(hold.lapsed(0, wall + 28_500)).toBe(true);
  });

  test("a confirmed in-progress counts from its sending; a late confirmation of an older one changes nothing", () => {
    const hold = new Hold(holdRules(10_000), 0, wall);
    hold.confirmed(5_000, wall + 5_000);
    hold.confirmed(2_000, wall + 2_000);
    expect(hold.lapsed(13_499, wall + 13_499)).toBe(false);
    expect(hold.lapsed(13_500, wall + 13_500)).toBe(true);
  });

  test("sending alone proves nothing", () => {
    const hold = new Hold(holdRules(10_000), 0, wall);
    hold.workingSent(8_000);
    expect(hold.lapsed(8_500, wall + 8_500)).toBe(true);
  });

  test("wants an in-progress every quarter of ackWait, counted from the last one sent", () => {
    const hold = new Hold(holdRules(10_000), 0, wall);
    expect(hold.wantsWorking(2_499)).toBe(false);
    expect(hold.wantsWorking(2_500)).toBe(true);
    hold.workingSent(2_500);
    expect(hold.wantsWorking(4_999)).toBe(false);
    expect(hold.wantsWorking(5_000)).toBe(true);
  });

  test("whatever ackWait: it lapses before the server redelivers, and at least two in-progress fit in before", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000, max: 3_600_000 }), (ackWaitMs) => {
        const { workingMs, marginMs } = holdRules(ackWaitMs);
        expect(marginMs).toBeGreaterThan(0);
        expect(workingMs * 2).toBeLessThan(ackWaitMs - marginMs);
        expect(marginMs).toBe(Math.min(1_500, ackWaitMs * 0.3));
      }),
    );
  });
});
