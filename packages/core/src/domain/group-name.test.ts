import fc from "fast-check";
import { expect, test } from "vitest";
import { groupNameFault, laneConsumerName } from "./group-name.js";

test.each(["billing", "A-z_0", "x", "g".repeat(64), "a-g1-2"])("%s is a group's name", (name) => {
  expect(groupNameFault(name)).toBeUndefined();
});

test.each([
  "a b",
  "a.b",
  "a/b",
  "a\\b",
  "*",
  ">",
  "",
  "é",
  "x".repeat(65),
  "y".repeat(300),
  "a\n",
  null,
  undefined,
  42,
  {},
])("R42: %j is refused with what is allowed", (name) => {
  expect(groupNameFault(name)).toMatch(/group must be 1 to 64 characters/);
});

test("R42: two groups, generations or lanes never share a durable", () => {
  const unit = fc.constantFrom(..."ag-_0123");
  const name = fc.string({ unit, minLength: 1, maxLength: 12 });
  const number = fc.integer({ min: 0, max: 120 });
  const one = fc.tuple(name, number, number);
  fc.assert(
    fc.property(one, one, (a, b) => {
      fc.pre(a.join() !== b.join());
      expect(laneConsumerName(...a)).not.toBe(laneConsumerName(...b));
    }),
    { numRuns: 20_000 },
  );
  // The hardest: a name that looks like the end of another's durable.
  expect(laneConsumerName("a-g1-2", 3, 4)).not.toBe(laneConsumerName("a", 1, 2));
});

test("a durable is one subject token whatever the group", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 64 }), (name) => {
      fc.pre(groupNameFault(name) === undefined);
      expect(laneConsumerName(name, 1, 4095)).toMatch(/^[A-Za-z0-9_-]+$/);
    }),
  );
});
