import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assignLanes, type LaneOwners } from "./lane-assignment.js";

const names = ["a", "b", "c", "d", "e", "f", "g"] as const;
const members = fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 7 });
const owners = fc.array(fc.option(fc.constantFrom(...names, "gone"), { nil: undefined }), {
  minLength: 1,
  maxLength: 24,
});
const runs = { numRuns: 3_000 };

describe("assignment from any state", () => {
  test("every lane has a live member, balanced to within one", () => {
    fc.assert(
      fc.property(members, owners, (live, held) => {
        const counts = countsOf(live, assignLanes(live, held));
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(held.length);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
      runs,
    );
  });

  test("fewest moves: as many lanes stay as any balanced assignment could leave", () => {
    fc.assert(
      fc.property(members, owners, (live, held) => {
        const target = assignLanes(live, held);
        const stay = held.filter((owner, lane) => owner !== undefined && target[lane] === owner).length;
        expect(stay).toBe(mostThatCanStay(live, held));
      }),
      runs,
    );
  });

  test("the same answer in every process, in whatever order it learned of the members", () => {
    fc.assert(
      fc.property(members, owners, fc.infiniteStream(fc.nat()), (live, held, order) => {
        const shuffled = [...live].sort(() => ((order.next().value ?? 0) % 3) - 1);
        expect(assignLanes([...shuffled, ...shuffled], held)).toEqual(assignLanes(live, held));
      }),
      runs,
    );
  });

  test("at rest: what it has answered it leaves as it is", () => {
    fc.assert(
      fc.property(members, owners, (live, held) => {
        const target = assignLanes(live, held);
        expect(assignLanes(live, target)).toEqual(target);
      }),
      runs,
    );
  });
});

function countsOf(live: readonly string[], held: LaneOwners): number[] {
  return live.map((member) => held.filter((owner) => owner === member).length);
}

/** Everyone may keep up to the base share, and as many as there are odd lanes may keep one more. */
function mostThatCanStay(live: readonly string[], held: LaneOwners): number {
  const base = Math.floor(held.length / live.length);
  const odd = held.length % live.length;
  const counts = countsOf(live, held);
  const kept = counts.reduce((sum, count) => sum + Math.min(count, base), 0);
  return kept + Math.min(odd, counts.filter((count) => count > base).length);
}
