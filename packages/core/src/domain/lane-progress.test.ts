import { describe, expect, test } from "vitest";
import { LaneProgress } from "./lane-progress.js";

const at = (seq: number): string => `1767000000000000${String(seq).padStart(3, "0")}`;
const deliver = (progress: LaneProgress, ...seqs: number[]): void => {
  for (const seq of seqs) progress.delivered(seq, at(seq));
};

describe("what an owner knows of its lane", () => {
  test("what was delivered and is not open is settled, also above an event that is stuck", () => {
    const progress = new LaneProgress();
    deliver(progress, 3, 5, 9);
    progress.settled(5);
    progress.settled(9);
    expect([3, 5, 9, 10].map((seq) => progress.isSettled(seq, at(seq)))).toEqual([false, true, true, false]);
    expect(progress.floor).toBe(3);
  });

  test("a new owner goes on from the record of the last one", () => {
    const before = new LaneProgress();
    deliver(before, 3, 5, 9);
    before.settled(5);
    const after = new LaneProgress();
    deliver(after, 99);
    after.restore(before.record());
    expect([3, 5, 9].map((seq) => after.isSettled(seq, at(seq)))).toEqual([false, true, false]);
    expect(after.record()).toEqual({ top: 9, stamp: at(9), open: [3, 9] });
  });

  test("O4: a sequence that the stream uses a second time, after a power cut, is another event", () => {
    const progress = new LaneProgress();
    deliver(progress, 3, 5);
    progress.settled(3);
    progress.settled(5);
    expect(progress.isSettled(3, at(900))).toBe(false);
    progress.delivered(3, at(900));
    expect(progress.record()).toEqual({ top: 3, stamp: at(900), open: [3] });
    expect(progress.isSettled(5, at(901))).toBe(false);
  });

  test("nothing is known before the first delivery", () => {
    const progress = new LaneProgress();
    expect(progress.record()).toBeUndefined();
    expect(progress.isSettled(1, at(1))).toBe(false);
    progress.restore(undefined);
    expect(progress.record()).toBeUndefined();
  });

  test("its size is what is open, however much was settled", () => {
    const progress = new LaneProgress();
    for (let seq = 1; seq <= 10_000; seq++) {
      progress.delivered(seq, String(seq));
      if (seq > 1) progress.settled(seq);
    }
    expect(progress.record()?.open).toEqual([1]);
  });
});
