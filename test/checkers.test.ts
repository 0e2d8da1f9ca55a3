import { describe, expect, test } from "vitest";
import { checkComplete } from "./harness/checkers/check-complete.js";
import { checkNoGap } from "./harness/checkers/check-no-gap.js";
import { checkOneAtATime } from "./harness/checkers/check-one-at-a-time.js";
import { checkOrder } from "./harness/checkers/check-order.js";
import { checkPublishOrder } from "./harness/checkers/check-publish-order.js";
import { expectNoFaults } from "./harness/checkers/fault.js";
import type { StoredEvent } from "./harness/history-record.js";
import { PlantedHistory } from "./harness/planted-history.js";

const stored = (...keys: string[]): StoredEvent[] =>
  keys.map((key, index) => ({ seq: index + 1, key, lane: 0, type: "t" }));

describe("O1: first starts of a key follow stream order", () => {
  test("retries, redeliveries to another process, other keys and other groups are no faults", () => {
    const history = new PlantedHistory()
      .run("A", "k", 1, 0, 10, "failed")
      .run("A", "k", 1, 20, 30)
      .run("B", "other", 2, 5, 6)
      .run("A", "k", 3, 40, 50)
      .run("B", "k", 1, 60, 70) // Replayed after a server crash: its first start was in order.
      .run("C", "k", 1, 45, 46, "handled", "second-group").records;
    expect(checkOrder(history)).toEqual([]);
  });

  test("an event that first starts after a later one of its key is a fault, across processes", () => {
    const history = new PlantedHistory().run("A", "k", 3, 0, 10).run("B", "k", 1, 20, 30).records;
    expect(checkOrder(history)).toMatchObject([
      { invariant: "O1", key: "k", seqs: [1, 3], processes: ["B", "A"], atMs: 20 },
    ]);
  });

  test("each event that is out of order is reported, and only those", () => {
    const history = new PlantedHistory();
    [1, 4, 2, 3, 5].forEach((seq, index) => void history.run("A", "k", seq, index * 10, index * 10 + 5));
    expect(checkOrder(history.records).map((fault) => fault.seqs)).toEqual([
      [2, 4],
      [3, 4],
    ]);
  });
});

describe("O2: one handler of a key at a time", () => {
  test("runs that touch, runs of other keys and runs of other groups do not overlap", () => {
    const history = new PlantedHistory()
      .run("A", "k", 1, 0, 10)
      .run("B", "k", 2, 10, 20)
      .run("B", "l", 3, 5, 15)
      .run("B", "k", 1, 5, 15, "handled", "second-group").records;
    expect(checkOneAtATime(history)).toEqual({
      faults: [],
      frozenOverlaps: [],
      crashOverlaps: [],
      deletedOverlaps: [],
    });
  });

  test("two runs of one key at once are a fault, whether of one event or two, of one process or two", () => {
    expect(faultsOf(new PlantedHistory().run("A", "k", 1, 0, 10).run("B", "k", 1, 9, 20))).toHaveLength(1);
    expect(faultsOf(new PlantedHistory().run("A", "k", 1, 0, 10).run("A", "k", 2, 9, 20))).toMatchObject([
      { invariant: "O2", seqs: [1, 2], processes: ["A", "A"], atMs: 9 },
    ]);
  });

  test("a long run is compared with every later one, not just with the next", () => {
    const history = new PlantedHistory()
      .run("A", "k", 1, 0, 100)
      .run("B", "k", 2, 10, 20)
      .run("B", "k", 3, 30, 40);
    expect(faultsOf(history).map((fault) => fault.seqs)).toEqual([
      [1, 2],
      [1, 3],
    ]);
  });

  test("a killed process's open run ends at its death, so its redelivery is no overlap", () => {
    const history = new PlantedHistory()
      .start("A", "k", 1, 0)
      .add("test", 50, { kind: "killed", about: "A" })
      .add("test", 55, { kind: "exited", about: "A", code: null, signal: "SIGKILL" })
      .run("B", "k", 1, 51, 60);
    expect(faultsOf(history)).toEqual([]);
  });

  test("a run that started before the death of its own process overlaps with what starts before that death", () => {
    const history = new PlantedHistory()
      .start("A", "k", 1, 0)
      .run("B", "k", 1, 40, 60)
      .add("test", 50, { kind: "killed", about: "A" });
    expect(faultsOf(history)).toHaveLength(1);
  });

  test("a run that never ends in a living process overlaps with whatever comes after it", () => {
    expect(faultsOf(new PlantedHistory().start("A", "k", 1, 0).run("B", "k", 1, 1e9, 1e9 + 1))).toHaveLength(
      1,
    );
  });

  test("a frozen process's run goes on through the freeze: told apart when the freeze outlasted ackWait", () => {
    const history = frozen(0, 10, 2_100).run("B", "k", 1, 2_005, 2_020).run("B", "k", 2, 2_030, 2_110);
    const judged = checkOneAtATime(history.records, { ackWaitMs: 2_000 });
    expect(judged.faults).toEqual([]);
    expect(judged.frozenOverlaps.map((overlap) => overlap.seqs)).toEqual([
      [1, 1],
      [1, 2],
    ]);
    for (const { inHand } of judged.frozenOverlaps) expect(inHand).toMatchObject({ process: "A", seq: 1 });
    expect(checkOneAtATime(history.records).faults).toHaveLength(2);
  });

  test("the stated hole covers nothing else: a shorter freeze, a run started after it, an overlap before it", () => {
    const ackWaitMs = 2_000;
    const shorter = frozen(0, 10, 1_000).run("B", "k", 1, 500, 600);
    expect(checkOneAtATime(shorter.records, { ackWaitMs }).faults).toHaveLength(1);
    const startedAfter = new PlantedHistory()
      .add("test", 0, { kind: "frozen", about: "A", why: "SIGSTOP" })
      .add("test", 5_000, { kind: "thawed", about: "A" })
      .run("A", "k", 1, 5_001, 5_100)
      .run("B", "k", 1, 5_050, 5_060);
    expect(checkOneAtATime(startedAfter.records, { ackWaitMs }).faults).toHaveLength(1);
    const before = frozen(0, 100, 5_000).run("B", "k", 1, 50, 60);
    expect(checkOneAtATime(before.records, { ackWaitMs }).faults).toHaveLength(1);
  });
});

describe("O3: no event starts before every earlier one of its key is settled", () => {
  test("handled, dropped and parked events are settled; other keys are nobody's business", () => {
    const history = new PlantedHistory()
      .run("A", "k", 1, 0, 10)
      .run("A", "k", 2, 20, 30, "failed")
      .notify("A", 31, "dropped", 2)
      .run("A", "k", 4, 40, 50, "failed")
      .notify("A", 51, "parked", 4)
      .run("B", "k", 5, 60, 70);
    expect(checkNoGap(history.records, stored("k", "k", "other", "k", "k"))).toEqual([]);
  });

  test("an event that nobody ever started is a gap", () => {
    const history = new PlantedHistory().run("A", "k", 1, 0, 10).run("A", "k", 3, 20, 30);
    expect(checkNoGap(history.records, stored("k", "k", "k"))).toMatchObject([
      { invariant: "O3", key: "k", seqs: [2, 3], processes: ["A"], atMs: 20 },
    ]);
  });

  test("an event that failed, or was settled only later, is a gap; each event is reported once", () => {
    const story = new PlantedHistory()
      .run("A", "k", 1, 0, 10, "failed")
      .run("B", "k", 2, 20, 30, "failed")
      .run("B", "k", 2, 40, 50)
      .run("A", "k", 1, 60, 70);
    expect(checkNoGap(story.records, stored("k", "k")).map((fault) => fault.seqs)).toEqual([[1, 2]]);
  });

  test("an event whose process died inside it is not settled", () => {
    const story = new PlantedHistory()
      .start("A", "k", 1, 0)
      .add("test", 5, { kind: "killed", about: "A" })
      .run("B", "k", 2, 20, 30);
    expect(checkNoGap(story.records, stored("k", "k"))).toHaveLength(1);
  });

  test("what one group settled is not settled for another", () => {
    const story = new PlantedHistory()
      .run("A", "k", 1, 0, 10)
      .run("B", "k", 2, 20, 30, "handled", "second-group");
    expect(checkNoGap(story.records, stored("k", "k"))).toHaveLength(1);
  });
});

describe("O4: every stored event is handled, dropped or parked", () => {
  test("a whole history has no fault, and repeats are counted", () => {
    const story = new PlantedHistory()
      .run("A", "k", 1, 0, 10)
      .run("B", "k", 1, 20, 30)
      .run("A", "k", 2, 40, 50, "failed")
      .notify("A", 51, "dropped", 2);
    expect(checkComplete(story.records, stored("k", "k"), ["g"])).toEqual({ faults: [], repeats: 1 });
  });

  test("an event that was never started, only failed, or lost with its process is a fault", () => {
    const story = new PlantedHistory()
      .run("A", "k", 2, 0, 10, "failed")
      .start("A", "l", 3, 20)
      .add("test", 25, { kind: "killed", about: "A" });
    const { faults } = checkComplete(story.records, stored("k", "k", "l"), ["g"]);
    expect(faults.map((fault) => fault.seqs)).toEqual([[1], [2], [3]]);
    expect(faults[0]).toMatchObject({ invariant: "O4", key: "k" });
  });

  test("a group that never ran anything has handled nothing", () => {
    const story = new PlantedHistory().run("A", "k", 1, 0, 10);
    expect(checkComplete(story.records, stored("k"), ["g", "idle"]).faults).toHaveLength(1);
  });

  test("running an event that is not stored, or under another key, is a fault", () => {
    const story = new PlantedHistory().run("A", "k", 1, 0, 10).run("A", "k", 9, 20, 30);
    expect(checkComplete(story.records, stored("k"), ["g"]).faults.map((fault) => fault.seqs)).toEqual([[9]]);
    const wrongKey = new PlantedHistory().run("A", "l", 1, 0, 10);
    expect(checkComplete(wrongKey.records, stored("k"), ["g"]).faults).toHaveLength(1);
  });
});

describe("P1: one publisher's events of a key are stored in call order, each at most once", () => {
  const by = (seq: number, call: number, key = "k", process = "P"): StoredEvent => ({
    seq,
    key,
    lane: 0,
    type: "t",
    publishedBy: { process, call },
  });

  test("in order, with unknown ones absent or in place, refused ones absent, and two publishers interleaved", () => {
    const story = new PlantedHistory()
      .publish("P", "k", 1, { seq: 1 })
      .publish("P", "k", 2, "unknown")
      .publish("P", "k", 3, { seq: 4 })
      .publish("P", "k", 4, "unknown")
      .publish("P", "k", 5, "refused")
      .publish("Q", "k", 1, { seq: 3 });
    expect(checkPublishOrder(story.records, [by(1, 1), by(3, 1, "k", "Q"), by(4, 3), by(7, 4)])).toEqual([]);
  });

  const settled = new PlantedHistory().publish("P", "k", 1, { seq: 1 }).publish("P", "k", 2, { seq: 2 });
  const swapped = new PlantedHistory().publish("P", "k", 1, { seq: 2 }).publish("P", "k", 2, { seq: 1 });
  const unknown = new PlantedHistory().publish("P", "k", 1, "unknown").publish("P", "k", 2, { seq: 2 });
  const refused = new PlantedHistory().publish("P", "k", 1, "refused");
  test.each<[string, PlantedHistory, StoredEvent[], RegExp]>([
    ["stored before its earlier call", swapped, [by(1, 2), by(2, 1)], /before its earlier call 1 at seq 2/],
    ["unknown and stored late", unknown, [by(2, 2), by(3, 1)], /before its earlier call 1/],
    ["stored twice", settled, [by(1, 1), by(2, 2), by(3, 1)], /stored 2 times, at seq 1 and 3/],
    ["acknowledged, not stored", settled, [by(1, 1)], /acknowledged with seq 2, but is not stored/],
    [
      "acknowledged elsewhere",
      settled,
      [by(1, 1), by(3, 2)],
      /acknowledged with seq 2, but is stored at seq 3/,
    ],
    ["refused, yet stored", refused, [by(1, 1)], /was refused, yet is stored/],
    ["under another key", settled, [by(1, 1), by(2, 2, "l")], /under key "l"/],
    ["never called", settled, [by(1, 1), by(2, 2), by(3, 3)], /no process recorded call P:3/],
  ])("%s is a fault", (_, story, events, text) => {
    const faults = checkPublishOrder(story.records, events);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatchObject({ invariant: "P1" });
    expect(faults[0]?.text).toMatch(text);
  });
});

test("faults are listed in full in the error, and no faults are no error", () => {
  expectNoFaults([]);
  const story = new PlantedHistory().run("A", "a b", 3, 0, 10).run("B", "a b", 1, 20, 30);
  expect(() => expectNoFaults(checkOrder(story.records))).toThrow(
    /1 faults:\n {2}O1: group g, key "a b": seq 1 first started in B at 20\.000, after seq 3 in A at 0\.000/,
  );
});

function frozen(startMs: number, fromMs: number, untilMs: number): PlantedHistory {
  return new PlantedHistory()
    .run("A", "k", 1, startMs, untilMs + 50)
    .add("test", fromMs, { kind: "frozen", about: "A", why: "SIGSTOP" })
    .add("test", untilMs, { kind: "thawed", about: "A" });
}

function faultsOf(story: PlantedHistory) {
  return checkOneAtATime(story.records).faults;
}
