import { expect, test } from "vitest";
import { KeySequences } from "./key-sequences.js";

const at = (value: number): { value: number; counts: boolean } => ({ value, counts: true });

test("positions count per key, without gaps", () => {
  const sequences = new KeySequences();
  expect(sequences.place("a")).toEqual({ position: 1 });
  expect(sequences.place("b")).toEqual({ position: 1 });
  expect(sequences.place("a")).toEqual({ position: 2 });
  expect(sequences.report()).toEqual({ keys: 2, events: 3, backwards: 0, repeats: 0, gaps: 0 });
});

test("values that go back, repeat or leave numbers out are told apart, and the first fault is named", () => {
  const sequences = new KeySequences();
  for (const [index, value] of [1, 2, 2, 5, 4].entries())
    sequences.place("a", at(value), `line ${index + 1}`);
  sequences.place("b", at(1), "line 6");
  expect(sequences.report()).toEqual({
    keys: 2,
    events: 6,
    backwards: 1,
    repeats: 1,
    gaps: 1,
    firstFault: 'line 3: "a" has 2 after 2',
  });
});

test("dates leave nothing out, however far apart they are", () => {
  const sequences = new KeySequences();
  sequences.place("a", { value: 1_000, counts: false });
  sequences.place("a", { value: 9_000, counts: false });
  expect(sequences.report().gaps).toBe(0);
});
