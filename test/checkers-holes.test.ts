import { describe, expect, test } from "vitest";
import { checkOneAtATime } from "./harness/checkers/check-one-at-a-time.js";
import { PlantedHistory } from "./harness/planted-history.js";

const SHARED = { forgottenMs: 100, underWayMs: 20 };
const judge = (story: PlantedHistory) => checkOneAtATime(story.records, { shared: SHARED });

describe("O2: a worker that its machine did not let run", () => {
  const ackWaitMs = 2_000;
  const stood = (startMs: number, fromMs: number, untilMs: number) =>
    new PlantedHistory().run("A", "k", 1, startMs, untilMs - 1).blocked("A", fromMs, untilMs);
  const judged = (story: PlantedHistory) => checkOneAtATime(story.records, { ackWaitMs });

  test("and that said so afterwards: an overlap with what it had in hand is told apart when that outlasted ackWait", () => {
    const story = stood(0, 10, 2_200).run("B", "k", 1, 2_050, 2_100);
    const { faults, frozenOverlaps } = judged(story);
    expect(faults).toEqual([]);
    expect(frozenOverlaps).toMatchObject([{ seqs: [1, 1], inHand: { process: "A", seq: 1 } }]);
    expect(checkOneAtATime(story.records).faults).toHaveLength(1);
  });

  test("the stated hole covers nothing else: a shorter standstill, another process's, a run before or after it, none", () => {
    const shorter = stood(0, 10, 2_000).run("B", "k", 1, 1_500, 1_600);
    expect(judged(shorter).faults).toHaveLength(1);
    const others = new PlantedHistory()
      .run("A", "k", 1, 0, 3_000)
      .blocked("B", 10, 2_900)
      .run("B", "k", 1, 2_950, 2_960);
    expect(judged(others).faults).toHaveLength(1);
    const laterBefore = stood(0, 500, 3_000).run("B", "k", 1, 400, 450);
    expect(judged(laterBefore).faults).toHaveLength(1);
    const startedAfter = new PlantedHistory()
      .blocked("A", 0, 5_000)
      .run("A", "k", 1, 5_001, 5_100)
      .run("B", "k", 1, 5_050, 5_060);
    expect(judged(startedAfter).faults).toHaveLength(1);
    const otherWord = new PlantedHistory()
      .run("A", "k", 1, 0, 3_000)
      .add("A", 2_900, { kind: "notification", type: "loop-blocked" })
      .run("B", "k", 1, 2_050, 2_100);
    expect(judged(otherWord).faults).toHaveLength(1);
  });
});

describe("O2: a single server that was killed hard", () => {
  const killed = (startMs: number, sentAtMs = 500, deadAtMs = 510) =>
    new PlantedHistory()
      .run("A", "k", 1, startMs, 1_000)
      .add("test", deadAtMs, { kind: "server-killed", sentAtMs });

  test("may not know what it gave away just before: an overlap of that with what started after the kill is told apart", () => {
    for (const startMs of [401, 505, 529]) {
      const story = killed(startMs).run("B", "k", 1, 700, 800).run("B", "k", 2, 800, 900);
      const { faults, crashOverlaps } = judge(story);
      expect(faults).toEqual([]);
      expect(crashOverlaps.map(({ seqs, inHand }) => [...seqs, inHand.process, inHand.seq])).toEqual([
        [1, 1, "A", 1],
        [1, 2, "A", 1],
      ]);
      expect(checkOneAtATime(story.records).faults).toHaveLength(2);
    }
  });

  test("the stated hole covers nothing else: what was in hand for longer, what started before its death or long after, no kill", () => {
    expect(judge(killed(399).run("B", "k", 1, 700, 800)).faults).toHaveLength(1);
    expect(judge(killed(450).run("B", "k", 1, 480, 800)).faults).toHaveLength(1);
    expect(judge(killed(450).run("B", "k", 1, 505, 800)).faults).toHaveLength(1);
    expect(judge(killed(531).run("B", "k", 1, 700, 800)).faults).toHaveLength(1);
    const unkilled = new PlantedHistory().run("A", "k", 1, 450, 1_000).run("B", "k", 1, 700, 800);
    expect(judge(unkilled).faults).toHaveLength(1);
  });
});

describe("O2: a lane's consumer that was deleted", () => {
  const deleted = (startMs: number, lane = 0) =>
    new PlantedHistory()
      .run("A", "k", 1, startMs, 1_000)
      .add("test", 510, { kind: "consumer-deleted", lane, sentAtMs: 500 });

  test("gives out again what is running: an overlap with that is told apart if its worker has told it", () => {
    const story = deleted(100).notify("A", 600, "overlap-possible", 1).run("B", "k", 1, 505, 800);
    const { faults, deletedOverlaps } = judge(story);
    expect(faults).toEqual([]);
    expect(deletedOverlaps).toMatchObject([{ seqs: [1, 1], inHand: { process: "A", seq: 1 } }]);
    expect(checkOneAtATime(story.records).faults).toHaveLength(1);
  });

  test("a handler that ends before its worker can have heard of it need not tell", () => {
    const short = (endMs: number) =>
      new PlantedHistory()
        .run("A", "k", 1, 480, endMs)
        .add("test", 510, { kind: "consumer-deleted", lane: 0, sentAtMs: 500 })
        .run("B", "k", 1, 505, 800);
    expect(judge(short(525)).faults).toEqual([]);
    expect(judge(short(535)).faults).toHaveLength(1);
  });

  test("the stated hole covers nothing else: not told, told of another event or before, another lane, what started long after, or the later one before it", () => {
    const later = (story: PlantedHistory, startMs = 700) => story.run("B", "k", 1, startMs, 800);
    expect(judge(later(deleted(100))).faults).toHaveLength(1);
    expect(judge(later(deleted(100).notify("A", 600, "overlap-possible", 2))).faults).toHaveLength(1);
    expect(judge(later(deleted(100).notify("A", 400, "overlap-possible", 1))).faults).toHaveLength(1);
    expect(judge(later(deleted(100).notify("B", 600, "overlap-possible", 1))).faults).toHaveLength(1);
    expect(judge(later(deleted(100, 1).notify("A", 600, "overlap-possible", 1))).faults).toHaveLength(1);
    expect(judge(later(deleted(531).notify("A", 600, "overlap-possible", 1))).faults).toHaveLength(1);
    const before = later(deleted(100).notify("A", 600, "overlap-possible", 1), 499);
    expect(judge(before).faults).toHaveLength(1);
  });
});
