import { describe, expect, test } from "vitest";
import { checkFence } from "./harness/checkers/check-fence.js";
import { PlantedHistory } from "./harness/planted-history.js";

describe("O6: a key's fence tokens never fall, and no two processes share one", () => {
  test("rising and equal tokens of one process, a new owner's higher one, other keys and other groups are sound", () => {
    const history = new PlantedHistory()
      .fencedStart("A", "k", 1, 0, { token: 4 })
      .fencedStart("A", "k", 2, 10, { token: 4 })
      .fencedStart("B", "k", 2, 20, { token: 7 })
      .fencedStart("A", "k", 3, 30, { token: 9 })
      .fencedStart("B", "other", 4, 40, { token: 4 })
      .fencedStart("C", "k", 1, 50, { token: 2, group: "second-group" });
    expect(checkFence(history.records)).toEqual([]);
  });

  test("a stream that was made anew begins again: incarnations are not compared, each is checked by itself", () => {
    const renewed = new PlantedHistory()
      .fencedStart("A", "k", 8, 0, { token: 9 })
      .fencedStart("B", "k", 1, 10, { token: 2, incarnation: "second" });
    expect(checkFence(renewed.records)).toEqual([]);
    renewed.fencedStart("A", "k", 2, 20, { token: 1, incarnation: "second" });
    expect(checkFence(renewed.records)).toMatchObject([
      { invariant: "O6", seqs: [1, 2], processes: ["B", "A"] },
    ]);
  });

  test("a start under a lower token than the key has seen is a fault, of the same process and of another", () => {
    for (const late of ["A", "B"]) {
      const history = new PlantedHistory()
        .fencedStart("A", "k", 1, 0, { token: 7 })
        .fencedStart(late, "k", 2, 10, { token: 6 });
      expect(checkFence(history.records)).toMatchObject([
        { invariant: "O6", key: "k", seqs: [1, 2], processes: ["A", late], atMs: 10 },
      ]);
    }
  });

  test("a start under another process's token is a fault", () => {
    const history = new PlantedHistory()
      .fencedStart("A", "k", 1, 0, { token: 7 })
      .fencedStart("B", "k", 2, 10, { token: 7 });
    const faults = checkFence(history.records);
    expect(faults).toMatchObject([
      { invariant: "O6", key: "k", seqs: [1, 2], processes: ["A", "B"], atMs: 10 },
    ]);
    expect(faults[0]?.text).toBe(
      'group g, key "k": seq 2 started in B at 10.000 with fence token 7, after A had started seq 1 with 7',
    );
  });

  test("starts are compared with the highest token so far: each late one is reported, and what follows soundly is not", () => {
    const history = new PlantedHistory()
      .fencedStart("A", "k", 1, 0, { token: 3 })
      .fencedStart("B", "k", 2, 10, { token: 8 })
      .fencedStart("A", "k", 2, 20, { token: 3 })
      .fencedStart("A", "k", 3, 30, { token: 5 })
      .fencedStart("B", "k", 3, 40, { token: 8 });
    expect(checkFence(history.records).map(({ seqs, atMs }) => [...seqs, atMs])).toEqual([
      [2, 2, 20],
      [2, 3, 30],
    ]);
  });

  test("a start without a token is not passed over", () => {
    const history = new PlantedHistory().run("A", "k", 1, 0, 10);
    expect(() => checkFence(history.records)).toThrow(/without its fence token/);
    history.fencedStart("A", "k", 2, 20, { token: 1 });
    expect(() => checkFence(history.records)).toThrow(/without its fence token/);
  });
});
