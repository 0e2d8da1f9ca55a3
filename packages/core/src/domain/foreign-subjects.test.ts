import { describe, expect, test } from "vitest";
import { foreignSubjects, subjectsOverlap } from "./foreign-subjects.js";

describe("subjectsOverlap", () => {
  const cases: [a: string, b: string, overlap: boolean][] = [
    ["a", "a", true],
    ["a", "b", false],
    ["a", "a.b", false],
    ["a.*", "a.b", true],
    ["a.*", "a.b.c", false],
    ["a.>", "a.b.c", true],
    ["a.>", "a", false],
    [">", "a.b", true],
    ["*.b", "a.*", true],
    ["*.b", "a.c", false],
    ["a.*.c", "a.b.>", true],
    ["orders.>", "orders2.>", false],
  ];

  test.each(cases)("%s and %s: %s", (a, b, overlap) => {
    expect(subjectsOverlap(a, b)).toBe(overlap);
    expect(subjectsOverlap(b, a)).toBe(overlap);
  });
});

test("O4: finds the subjects that could store an event without a lane, and no others", () => {
  const own = ["orders.0.>", "orders.1.>"];
  const found = [
    ...own,
    "orders.>",
    "orders.7.>",
    "*.1.x",
    ">",
    "orders",
    "audit.>",
    "orders2.>",
    "in.orders.>",
  ];
  expect(foreignSubjects("orders", own, found)).toEqual(["orders.>", "orders.7.>", "*.1.x", ">"]);
});
