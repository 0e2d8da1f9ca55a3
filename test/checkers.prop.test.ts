import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkComplete } from "./harness/checkers/check-complete.js";
import { checkNoGap } from "./harness/checkers/check-no-gap.js";
import { checkOneAtATime } from "./harness/checkers/check-one-at-a-time.js";
import { checkOrder } from "./harness/checkers/check-order.js";
import { checkPublishOrder } from "./harness/checkers/check-publish-order.js";
import type { HistoryRecord, StoredEvent } from "./harness/history-record.js";
import { PlantedHistory } from "./harness/planted-history.js";

describe("any history", () => {
  test("a correct one has no fault in any checker", () => {
    fc.assert(
      fc.property(world(), ({ history, events }) => {
        expect(allFaults(history, events)).toEqual([]);
      }),
    );
  });

  test("losing the settlement of any event is a fault in O4", () => {
    fc.assert(
      fc.property(world(), fc.nat(), ({ history, events }, pick) => {
        const lost = at(events, pick).seq;
        const rest = history.filter(
          (record) =>
            !((record.kind === "handler-end" || record.kind === "notification") && record.seq === lost),
        );
        expect(checkComplete(rest, events, ["g"]).faults.map((fault) => fault.seqs)).toEqual([[lost]]);
      }),
    );
  });

  test("swapping the events of two starts of one key is a fault in O1 and O3", () => {
    fc.assert(
      fc.property(world(), fc.nat(), ({ history, events }, pick) => {
        const pairs = neighbours(events);
        fc.pre(pairs.length > 0);
        const [first, second] = at(pairs, pick);
        const swapped = history.map((record): HistoryRecord => {
          if (!("seq" in record) || record.kind === "publish-settled") return record;
          if (record.seq === first) return { ...record, seq: second } as HistoryRecord;
          return record.seq === second ? ({ ...record, seq: first } as HistoryRecord) : record;
        });
        expect(checkOrder(swapped).map((fault) => fault.seqs)).toContainEqual([first, second]);
        expect(checkNoGap(swapped, events).length).toBeGreaterThan(0);
      }),
    );
  });

  test("a run that ends after the next one of its key has started is a fault in O2", () => {
    fc.assert(
      fc.property(world(), fc.nat(), ({ history }, pick) => {
        const starts = history.filter((record) => record.kind === "handler-start");
        const ended = new Set(
          history.flatMap((record) =>
            record.kind === "handler-end" ? [`${record.process} ${record.run}`] : [],
          ),
        );
        const pairs = starts.flatMap((start, index) => {
          const next = starts.slice(index + 1).find((other) => other.key === start.key);
          const hasEnd = ended.has(`${start.process} ${start.run}`); // A killed one ends with its process.
          return next !== undefined && hasEnd ? [{ start, next }] : [];
        });
        fc.pre(pairs.length > 0);
        const { start, next } = at(pairs, pick);
        const late = history.map((record) =>
          record.kind === "handler-end" && record.process === start.process && record.run === start.run
            ? { ...record, atMs: next.atMs + 0.5 }
            : record,
        );
        expect(checkOneAtATime(late).faults.length).toBeGreaterThan(0);
      }),
    );
  });

  test("two events of one publisher and key stored in each other's place are a fault in P1", () => {
    fc.assert(
      fc.property(world(), fc.nat(), ({ history, events }, pick) => {
        const pairs = neighbours(events);
        fc.pre(pairs.length > 0);
        const [first, second] = at(pairs, pick);
        const seqOf = (seq: number): number => (seq === first ? second : seq === second ? first : seq);
        const swapped = events.map((event) => ({ ...event, seq: seqOf(event.seq) }));
        expect(checkPublishOrder(history, swapped).length).toBeGreaterThan(0);
      }),
    );
  });
});

function allFaults(history: readonly HistoryRecord[], events: readonly StoredEvent[]) {
  return [
    ...checkOrder(history),
    ...checkOneAtATime(history).faults,
    ...checkNoGap(history, events),
    ...checkComplete(history, events, ["g"]).faults,
    ...checkPublishOrder(history, events),
  ];
}

/** Correct histories: a few keys and workers, with retries, kills inside a handler, drops and replays. */
function world(): fc.Arbitrary<{ history: HistoryRecord[]; events: StoredEvent[] }> {
  const step = fc.record({
    key: fc.constantFrom("a", "b c", "日本"),
    worker: fc.constantFrom("A", "B", "C"),
    pauseMs: fc.integer({ min: 1, max: 50 }),
    runMs: fc.integer({ min: 1, max: 50 }),
    fate: fc.constantFrom("handled", "retried", "killed", "dropped"),
  });
  return fc.array(step, { minLength: 1, maxLength: 30 }).map((steps) => {
    const story = new PlantedHistory();
    const clocks = new Map<string, number>();
    const events: StoredEvent[] = [];
    steps.forEach(({ key, worker, pauseMs, runMs, fate }, index) => {
      const seq = index + 1;
      events.push({ seq, key, lane: 0, type: "t", publishedBy: { process: "P", call: seq } });
      story.publish("P", key, seq, { seq });
      let now = (clocks.get(key) ?? 100) + pauseMs;
      if (fate === "killed") {
        const victim = `${worker}-${seq}`;
        story.start(victim, key, seq, now);
        now += runMs;
        story.add("test", now, { kind: "killed", about: victim });
      } else if (fate !== "handled") {
        story.run(worker, key, seq, now, now + runMs, "failed");
        now += runMs;
      }
      if (fate === "dropped") story.notify(worker, now, "dropped", seq);
      else {
        story.run(worker, key, seq, now + pauseMs, now + pauseMs + runMs);
        now += pauseMs + runMs;
      }
      clocks.set(key, now);
    });
    return { history: story.records, events };
  });
}

/** Pairs of neighbouring sequences of one key. */
function neighbours(events: readonly StoredEvent[]): [number, number][] {
  return events.flatMap((event, index): [number, number][] => {
    const next = events.slice(index + 1).find((other) => other.key === event.key);
    return next === undefined ? [] : [[event.seq, next.seq]];
  });
}

function at<T>(list: readonly T[], pick: number): T {
  const chosen = list[pick % list.length];
  if (chosen === undefined) throw new Error("an empty list has nothing to pick");
  return chosen;
}
