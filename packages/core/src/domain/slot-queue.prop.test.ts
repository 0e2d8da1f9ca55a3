import fc from "fast-check";
import { expect, test } from "vitest";
import { SlotQueue } from "./slot-queue.js";

const move = fc.constantFrom("ask", "ask", "ask", "release", "release", "pause", "resume");

test("first come, first served, never above the cap, and nothing waits while there is room", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(move, { maxLength: 300 }), (capacity, moves) => {
      const queue = new SlotQueue(capacity);
      const granted: number[] = [];
      let asked = 0;
      let held = 0;
      let paused = false;
      for (const one of moves) {
        if (one === "ask") {
          const number = asked++;
          queue.request({
            grant() {
              held++;
              granted.push(number);
            },
          });
        } else if (one === "release" && held > 0) {
          held--;
          queue.release();
        } else if (one === "pause") {
          paused = true;
          queue.pause();
        } else if (one === "resume") {
          paused = false;
          queue.resume();
        }
        expect(held).toBeLessThanOrEqual(capacity);
        expect(queue.used).toBe(held);
        if (!paused && held < capacity) expect(granted).toHaveLength(asked);
      }
      expect(granted).toEqual(granted.map((_, index) => index));
    }),
    { numRuns: 500 },
  );
});
