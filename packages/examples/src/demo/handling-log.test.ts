import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, openDatabase } from "../customer-events/database.js";
import { HandlingLog, type HandlingTotals, monotonicUs } from "./handling-log.js";

let database: Database.Database;
let log: HandlingLog;
beforeEach(() => {
  database = openDatabase(":memory:");
  log = new HandlingLog(database);
});
afterEach(() => {
  database.close();
});

/** `[key, position, began, ended]`; the sequence follows from key and position. */
type Handling = readonly [key: string, position: number, began: number, ended: number];

function totals(handlings: readonly Handling[]): HandlingTotals {
  const insert = database.prepare("INSERT INTO handling VALUES (?, ?, 'event', ?, ?, ?, 1, NULL)");
  for (const [key, position, began, ended] of handlings) {
    insert.run(key.charCodeAt(0) * 1_000 + position, key, position, began, ended);
  }
  return log.totals();
}

test("O1 to O3: one after the other, in order, with other keys between, is no fault", () => {
  expect(
    totals([
      ["a", 1, 0, 10],
      ["b", 1, 5, 30],
      ["a", 2, 10, 20],
      ["a", 3, 25, 30],
    ]),
  ).toMatchObject({ handled: 4, orderFaults: 0, duplicates: 0, broken: 0, elapsedMs: 0.03 });
});

test.each<[string, Handling[]]>([
  [
    "O2: an event that begins before the one before it is done",
    [
      ["a", 1, 0, 10],
      ["a", 2, 9, 20],
    ],
  ],
  [
    "O1: an event that is done before the one before it begins",
    [
      ["a", 1, 10, 20],
      ["a", 2, 0, 10],
    ],
  ],
  [
    "O3: an event whose predecessor was never handled",
    [
      ["a", 1, 0, 10],
      ["a", 3, 10, 20],
    ],
  ],
  ["O3: an event that began without the first of its key", [["a", 2, 0, 10]]],
  [
    "O1: an event that overtook the last but one",
    [
      ["a", 1, 0, 30],
      ["a", 2, 30, 31],
      ["a", 3, 29, 40],
    ],
  ],
])("%s is a fault", (_, handlings) => {
  expect(totals(handlings).orderFaults).toBe(1);
});

test("O4: a repeated handling is a duplicate and no fault, as first handlings are compared", () => {
  expect(
    totals([
      ["a", 1, 0, 10],
      ["a", 2, 10, 20],
      ["a", 1, 30, 40],
    ]),
  ).toMatchObject({ handled: 2, orderFaults: 0, duplicates: 1 });
});

test("an event that broke a rule, and one that no handling could apply, are counted once each", () => {
  const place = { position: 1 };
  const delivery = { key: "a", type: "event", data: {}, place };
  log.add({ ...delivery, seq: 1 }, monotonicUs(), { applied: true, broken: "too soon" });
  log.add({ ...delivery, seq: 1 }, monotonicUs(), { applied: false });
  log.add({ ...delivery, seq: 2 }, monotonicUs(), { applied: false });
  log.add({ ...delivery, seq: 3 }, monotonicUs(), { applied: true });
  log.add({ ...delivery, seq: 3 }, monotonicUs(), { applied: false });
  expect(log.totals()).toMatchObject({ handled: 3, broken: 2, duplicates: 2, example: "a: too soon" });
  expect(log.handled()).toBe(3);
});

test("an empty log has zeros", () => {
  expect(log.totals()).toEqual({ handled: 0, elapsedMs: 0, broken: 0, orderFaults: 0, duplicates: 0 });
});
