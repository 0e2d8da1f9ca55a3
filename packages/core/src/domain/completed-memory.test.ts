import { expect, test } from "vitest";
import { CompletedMemory } from "./completed-memory.js";

test("remembers a settled event by sequence and stamp: a reused sequence is another event", () => {
  const memory = new CompletedMemory();
  memory.add(5, "before");
  expect(memory.has(5, "before")).toBe(true);
  expect(memory.has(5, "after")).toBe(false);
  expect(memory.has(6, "before")).toBe(false);
  memory.add(5, "after");
  expect(memory.has(5, "before")).toBe(false);
});

test("is bounded: the oldest is forgotten first, and one settled again counts as new", () => {
  const memory = new CompletedMemory(3);
  for (const seq of [1, 2, 3]) memory.add(seq, "s");
  memory.add(1, "s");
  memory.add(4, "s");
  expect([1, 2, 3, 4].filter((seq) => memory.has(seq, "s"))).toEqual([1, 3, 4]);
});

test("forgets everything when told", () => {
  const memory = new CompletedMemory();
  memory.add(1, "s");
  memory.clear();
  expect(memory.has(1, "s")).toBe(false);
});
