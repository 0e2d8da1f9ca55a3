import fc from "fast-check";
import { expect, test } from "vitest";
import { SlotQueue } from "./slot-queue.js";

const reasons = ["verify", "layout"] as const;
const move = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("ask"), lane: fc.integer({ min: 0, max: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("release") }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constantFrom("pause", "resume"),
      reason: fc.constantFrom(...reasons),
    }),
  },
) as fc.Arbitrary<
  | { type: "ask"; lane: number }
  | { type: "release" }
  | { type: "pause" | "resume"; reason: (typeof reasons)[number] }
>;

test("never above the cap, nothing waits while there is room, and lanes take turns, each in its own order", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(move, { maxLength: 300 }), (capacity, moves) => {
      const queue = new SlotQueue(capacity);
      const paused = new Set<string>();
      const asked = new Map<number, number>();
      const granted = new Map<number, number>();
      /** Per lane that waits, how often others were granted since it began to, or since its own last turn. */
      const passed = new Map<number, Map<number, number>>();
      let held = 0;
      const waits = (lane: number) => (asked.get(lane) ?? 0) > (granted.get(lane) ?? 0);
      const grant = (lane: number, number: number) => {
        held++;
        expect(number).toBe(granted.get(lane) ?? 0);
        granted.set(lane, number + 1);
        for (const [other, by] of passed) {
          if (other !== lane && waits(other)) by.set(lane, (by.get(lane) ?? 0) + 1);
        }
        passed.set(lane, new Map());
      };
      for (const one of moves) {
        if (one.type === "ask") {
          const number = asked.get(one.lane) ?? 0;
          if (!waits(one.lane)) passed.set(one.lane, new Map());
          asked.set(one.lane, number + 1);
          queue.request(one.lane, { grant: () => grant(one.lane, number) });
        } else if (one.type === "pause") {
          paused.add(one.reason);
          queue.pause(one.reason);
        } else if (one.type === "resume") {
          paused.delete(one.reason);
          queue.resume(one.reason);
        } else if (held > 0) {
          held--;
          queue.release();
        }
        expect(held).toBeLessThanOrEqual(capacity);
        expect(queue.used).toBe(held);
        const waiting = [...asked.keys()].filter(waits);
        if (paused.size === 0 && held < capacity) expect(waiting).toEqual([]);
        for (const by of passed.values()) expect(Math.max(0, ...by.values())).toBeLessThanOrEqual(1);
      }
    }),
    { numRuns: 500 },
  );
});
