import { expect, test } from "vitest";
import { CompletedMemory } from "./completed-memory.js";

test("remembers a settled event by sequence and stamp: a reused sequence is another event", () => {
  const memory = new CompletedMemory();
  memory.settled(5, "before");
  expect(memory.isSettled(5, "before")).toBe(true);
  expect(memory.isSettled(5, "after")).toBe(false);
  expect(memory.isSettled(6, "before")).toBe(false);
  memory.settled(5, "after");
  expect(memory.isSettled(5, "before")).toBe(false);
});

test("a delivery alone settles nothing, neither the event nor what came before it", () => {
  const memory = new CompletedMemory();
  memory.delivered();
  expect([4, 5].filter((seq) => memory.isSettled(seq, "s"))).toEqual([]);
});

test("is bounded: the oldest is forgotten first, and one settled again counts as new", () => {
  const memory = new CompletedMemory(3);
  for (const seq of [1, 2, 3]) memory.settled(seq, "s");
  memory.settled(1, "s");
  memory.settled(4, "s");
  expect([1, 2, 3, 4].filter((seq) => memory.isSettled(seq, "s"))).toEqual([1, 3, 4]);
});

test("forgets everything when told", () => {
  const memory = new CompletedMemory();
  memory.settled(1, "s");
  memory.clear();
  expect(memory.isSettled(1, "s")).toBe(false);
});
