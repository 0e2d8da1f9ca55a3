import { expect, test } from "vitest";
import { HandlerTurns } from "./handler-turns.js";

/** Turns on a clock and an event loop that go on by hand. */
function scene() {
  let now = 0;
  let rounds: (() => void)[] = [];
  const taken: string[] = [];
  const turns = new HandlerTurns({ now: () => now }, (run) => void rounds.push(run));
  return {
    taken,
    pass: (ms: number) => {
      now += ms;
    },
    goRound: () => {
      const due = rounds;
      rounds = [];
      for (const run of due) run();
      return due.length;
    },
    /** A handler that takes `ms`, and then does `more`. */
    add: (name: string, ms = 0, more: () => void = () => {}) =>
      turns.add({
        take: (later) => {
          taken.push(later ? `${name} later` : name);
          now += ms;
          more();
        },
      }),
  };
}

test("a turn is taken at once as long as the event loop went round less than 5 ms ago", () => {
  const { add, taken } = scene();
  add("a", 2);
  add("b", 2);
  expect(taken).toEqual(["a", "b"]);
});

test("handlers that compute and start the next ones from microtasks do not keep the event loop to themselves", () => {
  const { add, taken, goRound } = scene();
  for (const name of ["a", "b", "c", "d", "e", "f", "g"]) add(name, 2);
  expect(taken).toEqual(["a", "b", "c"]);
  expect(goRound()).toBe(1);
  expect(taken).toEqual(["a", "b", "c", "d later", "e later", "f later"]);
  goRound();
  expect(taken.at(-1)).toBe("g later");
});

test("what is added while a handler is being started, or while others wait, keeps its place", () => {
  const { add, taken, goRound, pass } = scene();
  add("a", 1, () => {
    add("b", 1);
    add("c", 10);
  });
  add("d");
  expect(taken).toEqual(["a", "b later", "c later"]);
  pass(100);
  add("e");
  goRound();
  expect(taken).toEqual(["a", "b later", "c later", "d later", "e later"]);
});

test("a turn that throws is over, and the others go on", () => {
  const { add, taken, goRound } = scene();
  const fail = () => {
    throw new Error("planned");
  };
  expect(() => add("a", 9, fail)).toThrow("planned");
  add("b", 0, fail);
  add("c");
  expect(goRound).toThrow("planned");
  add("d");
  expect(taken).toEqual(["a", "b later"]);
  goRound();
  expect(taken).toEqual(["a", "b later", "c later", "d later"]);
});
