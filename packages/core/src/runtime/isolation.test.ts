import { describe, expect, test } from "vitest";
import { Isolation, SuspectTurns } from "./isolation.js";

/** One lane's isolation, whose marks the test confirms. */
function lane(turns = new SuspectTurns()) {
  const marks: { seq: number | undefined; harmless: boolean; answer: (marked: boolean) => void }[] = [];
  const isolation = new Isolation(turns, (seq, harmless = true) => {
    return new Promise((answer) => {
      marks.push({ seq, harmless, answer });
    });
  });
  const begun: number[] = [];
  return {
    isolation,
    marks,
    begun,
    start: (...seqs: number[]) => {
      for (const seq of seqs) isolation.beforeStart(seq, () => void begun.push(seq));
    },
    /** Every mark asked for so far is written, or is not. */
    async answer(marked = true): Promise<void> {
      for (const { answer } of marks) answer(marked);
      await new Promise((resolve) => setImmediate(resolve));
    },
    marked: () => marks.map(({ seq }) => seq),
  };
}

describe("R26: an event that kills its process is told from its neighbours", () => {
  test("who is no suspect starts at once, also beside a suspect", () => {
    const { isolation, begun, start } = lane();
    isolation.begin([5]);
    start(4, 5, 6);
    expect(begun).toEqual([4, 6]);
  });

  test("a suspect starts only once the claim names it: when the process dies then, it was this one", async () => {
    const { isolation, begun, start, answer, marked } = lane();
    isolation.begin([5]);
    start(5);
    expect(begun).toEqual([]);
    expect(marked()).toEqual([5]);
    await answer();
    expect(begun).toEqual([5]);
  });

  test("suspects run one at a time, those of other lanes too, each with its own mark", async () => {
    const turns = new SuspectTurns();
    const [one, other] = [lane(turns), lane(turns)];
    const begun = () => [...one.begun, ...other.begun];
    one.isolation.begin([5, 6]);
    other.isolation.begin([9]);
    one.start(5, 6);
    other.start(9);
    await one.answer();
    expect(begun()).toEqual([5]);
    expect(other.marks).toEqual([]);
    one.isolation.afterEnd(5, true);
    // First the mark is taken off, then the next one is written.
    await one.answer();
    expect(begun()).toEqual([5]);
    await one.answer();
    expect(begun()).toEqual([5, 6]);
    one.isolation.afterEnd(6, true);
    await one.answer();
    await other.answer();
    expect(begun()).toEqual([5, 6, 9]);
  });

  test("one that ran and did no harm is no suspect any more", async () => {
    const { isolation, begun, start, answer, marked } = lane();
    isolation.begin([5]);
    start(5);
    await answer();
    isolation.afterEnd(5, true);
    expect(marked()).toEqual([5, undefined]);
    start(5);
    expect(begun).toEqual([5, 5]);
  });

  test("one that did not run after all is a suspect as before, and the next takes its turn", async () => {
    const { isolation, begun, start, answer, marks, marked } = lane();
    isolation.begin([5, 6]);
    start(5, 6);
    await answer();
    isolation.afterEnd(5, false);
    expect(marks.at(-1)).toMatchObject({ seq: undefined, harmless: false });
    await answer();
    start(5);
    await answer();
    isolation.afterEnd(6, true);
    await answer();
    await answer();
    expect(marked()).toEqual([5, undefined, 6, undefined, 5]);
    expect(begun).toEqual([5, 6, 5]);
  });

  test("the end of another event says nothing about the suspect that runs", async () => {
    const { isolation, marks, start, answer } = lane();
    isolation.begin([5, 6]);
    start(5, 6);
    await answer();
    isolation.afterEnd(4, true);
    isolation.afterEnd(6, true);
    expect(marks).toHaveLength(1);
  });

  test("O6: a mark that could not be written means that the lane is not ours any more: it does not start", async () => {
    const { isolation, begun, start, answer } = lane();
    isolation.begin([5]);
    start(5);
    await answer(false);
    expect(begun).toEqual([]);
  });

  test("O6: a mark confirmed after the lane was taken away starts nothing", async () => {
    const { isolation, begun, start, answer } = lane();
    isolation.begin([5]);
    start(5);
    isolation.end();
    await answer();
    expect(begun).toEqual([]);
  });

  test("a lane that ends gives its turn to the others; one that ended while it waited neither starts nor holds them up", async () => {
    const turns = new SuspectTurns();
    const [one, two, three] = [lane(turns), lane(turns), lane(turns)];
    for (const [seq, each] of [one, two, three].entries()) {
      each.isolation.begin([seq]);
      each.start(seq);
    }
    await one.answer();
    two.isolation.end();
    one.isolation.end();
    expect(two.marks).toEqual([]);
    await three.answer();
    expect(three.begun).toEqual([2]);
  });

  test("a new round forgets the suspects of the one before", () => {
    const { isolation, begun, start } = lane();
    isolation.begin([5]);
    isolation.begin([6]);
    start(5);
    expect(begun).toEqual([5]);
  });
});

test("turns are given in the order of asking, and one that gives back at once lets the next one in", () => {
  const turns = new SuspectTurns();
  const taken: string[] = [];
  const take = (name: string, after = () => {}) => {
    turns.take(() => {
      taken.push(name);
      after();
    });
  };
  take("a");
  take("b", () => turns.giveBack());
  take("c");
  expect(taken).toEqual(["a"]);
  turns.giveBack();
  expect(taken).toEqual(["a", "b", "c"]);
  turns.giveBack();
  take("d");
  expect(taken).toEqual(["a", "b", "c", "d"]);
});
