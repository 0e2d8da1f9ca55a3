import { expect, test } from "vitest";
import { orderValue } from "./order-value.js";

test("numbers and strings that spell them", () => {
  expect(orderValue(7)).toEqual({ value: 7, counts: true });
  expect(orderValue("-7")).toEqual({ value: -7, counts: true });
  expect(orderValue(7.5)).toEqual({ value: 7.5, counts: false });
});

test("dates and times compare across offsets, and to the microsecond", () => {
  const value = (text: string): number => {
    const order = orderValue(text);
    if (typeof order === "string") throw new Error(order);
    return order.value;
  };
  expect(value("2026-05-01T09:30:00+02:00")).toBe(value("2026-05-01T07:30:00Z"));
  expect(value("2026-05-01T09:30:00.123456Z")).toBeLessThan(value("2026-05-01T09:30:00.123457Z"));
  expect(value("2026-05-01T09:30:00.123999Z")).toBeLessThan(value("2026-05-01T09:30:00.124Z"));
});

test.each([
  ["nothing", undefined, /is missing/],
  ["null", null, /is null/],
  ["words", "later", /is "later"/],
  ["an empty string", "", /is ""/],
  ["a date without a time", "2026-05-01", /must be a number, or a date and time/],
  ["a time without an offset, as it could be anywhere", "2026-05-01T09:30:00", /must be a number/],
  ["a day that is none", "2026-13-01T09:30:00Z", /must be a number/],
  ["a whole number that JSON has rounded", 2 ** 53, /cannot be compared exactly/],
  ["digits beyond what a number holds", "9007199254740993", /cannot be compared exactly/],
  ["an object", { n: 1 }, /is \{"n":1\}/],
])("%s is none, and it says why", (_, given, message) => {
  expect(orderValue(given)).toMatch(message);
});
