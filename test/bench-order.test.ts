import { describe, expect, test } from "vitest";
import { checkRecords } from "../bench/measure/check-records.js";
import { lostOf } from "../bench/measure/checked-handler.js";
import { OrderCheck } from "../bench/measure/order-check.js";
import type { RunRecord } from "../bench/measure/run-records.js";

/** "k1" starts event 1 of key k, "-k" ends what runs of it. */
function checked(...steps: string[]): OrderCheck {
  const order = new OrderCheck(2);
  const keyOf = (letter: string | undefined) => (letter === "l" ? 1 : 0);
  for (const step of steps) {
    if (step.startsWith("-")) order.end(keyOf(step[1]));
    else order.start(keyOf(step[0]), Number(step.slice(1)));
  }
  return order;
}

describe("the benchmarks' order check", () => {
  test("keys that interleave, and events that run again after a failure, are no faults", () => {
    const order = checked("k1", "l1", "-k", "k2", "-l", "-k", "k2", "-k", "k3", "-k");
    expect(order).toMatchObject({ faults: 0, started: 4, ended: 4, again: 1 });
  });

  test.each([
    [
      "O1: an event that starts after a later one of its key, and the gap that it left",
      ["k1", "-k", "k3", "-k", "k2", "-k"],
      1,
    ],
    ["O3: an event that is left out", ["k1", "-k", "k3", "-k"], 1],
    ["O2: an event that starts while the one before it runs", ["k1", "k2", "-k"], 1],
    ["O2: an event that starts again while it runs", ["k1", "k1", "-k"], 1],
    ["each fault is counted", ["k2", "k4", "-k", "l2", "-l"], 4],
  ])("%s is a fault", (_, steps, faults) => {
    expect(checked(...steps).faults).toBe(faults);
  });

  test("events that neither ran nor wait are lost", () => {
    const order = checked("k1", "-k", "l1", "-l");
    expect(lostOf(order, 5, 3)).toBeUndefined();
    expect(lostOf(order, 5, 2)).toMatch(/^1 of 5 events were lost/);
  });
});

describe("runs of several processes", () => {
  const run = (n: number, from: number, until: number): RunRecord[] => [
    { type: "start", key: 0, n, at: from },
    { type: "end", key: 0, n, at: until },
  ];

  test("are one group's: one after the other is sound, at once is not (O2)", () => {
    const first = { records: [...run(1, 0, 10), ...run(3, 20, 30)] };
    expect(checkRecords([first, { records: run(2, 10, 20) }], 1).faults).toBe(0);
    expect(checkRecords([first, { records: run(2, 9, 20) }], 1).faults).toBe(1);
  });

  test("what a killed process was in the middle of ends with it", () => {
    const killed = { records: run(1, 0, 10).slice(0, 1), endedAt: 5 };
    expect(checkRecords([killed, { records: run(1, 6, 9) }], 1)).toMatchObject({ faults: 0, again: 1 });
    expect(checkRecords([killed, { records: run(1, 4, 9) }], 1).faults).toBe(1);
  });
});
