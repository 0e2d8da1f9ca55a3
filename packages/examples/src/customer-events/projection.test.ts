import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, inTransaction, openDatabase } from "./database.js";
import type { StoredCustomerEvent } from "./event.js";
import { CustomerProjection } from "./projection.js";

const CREATED: StoredCustomerEvent = {
  key: "c1",
  seq: 10,
  type: "created",
  data: { name: "Ada", address: "1 Mill Lane" },
};
const PLACED: StoredCustomerEvent = {
  key: "c1",
  seq: 11,
  type: "order-placed",
  data: { order: "o1", cents: 1 },
};
const PAID: StoredCustomerEvent = { key: "c1", seq: 14, type: "order-paid", data: { order: "o1", cents: 1 } };
const SHIPPED: StoredCustomerEvent = {
  key: "c1",
  seq: 15,
  type: "order-shipped",
  data: { order: "o1", carrier: "by bike" },
};
const CLOSED: StoredCustomerEvent = { key: "c1", seq: 20, type: "closed", data: { reason: "moved away" } };

let database: Database.Database;
let projection: CustomerProjection;
beforeEach(() => {
  database = openDatabase(":memory:");
  projection = new CustomerProjection(database);
});
afterEach(() => {
  database.close();
});

test("O4: an event that comes again changes nothing", () => {
  expect(projection.apply(CREATED, "i1")).toEqual({ applied: true });
  expect(projection.apply(PLACED, "i1")).toEqual({ applied: true });
  expect(projection.apply(CREATED, "i1")).toEqual({ applied: false });
  expect(projection.apply(PLACED, "i1")).toEqual({ applied: false });
  expect(projection.totals()).toEqual({ customers: 1, active: 1, events: 2, brokenRules: 0 });
});

test("a stream made anew begins again at low sequences, and its events are not skipped", () => {
  projection.apply(CREATED, "i1");
  projection.apply(PLACED, "i1");
  expect(projection.apply({ ...CREATED, seq: 1 }, "i2")).toEqual({ applied: true });
  expect(projection.totals()).toEqual({ customers: 1, active: 1, events: 1, brokenRules: 0 });
});

test.each([
  ["paid before placed", [CREATED, PAID], "order paid before it was placed"],
  ["shipped before paid", [CREATED, PLACED, SHIPPED], "order shipped before it was paid"],
  ["before created", [PLACED], "order-placed before the customer was created"],
  ["after closed", [CREATED, CLOSED, { ...PLACED, seq: 21 }], "order-placed after the customer was closed"],
  ["closed too early", [CREATED, PLACED, CLOSED], "customer closed with an open order"],
  ["created twice", [CREATED, { ...CREATED, seq: 12 }], "created twice"],
  ["placed twice", [CREATED, PLACED, { ...PLACED, seq: 12 }], "order placed twice"],
])("O1: %s is a broken rule, and counted", (_, events, broken) => {
  const results = events.map((event) => projection.apply(event, "i1"));
  expect(results.at(-1)).toEqual({ applied: true, broken });
  expect(projection.totals().brokenRules).toBe(1);
});

test("a transaction that fails leaves no trace", () => {
  const failing = (): void =>
    inTransaction(database, () => {
      projection.apply(CREATED, "i1");
      throw new Error("no");
    });
  expect(failing).toThrow("no");
  expect(projection.totals().customers).toBe(0);
  expect(inTransaction(database, () => projection.apply(CREATED, "i1"))).toEqual({ applied: true });
});
