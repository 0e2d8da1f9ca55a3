import { describe, expect, test } from "vitest";
import { intakeSubject, intakeWildcard, type LaneLayout, parseIntake } from "./index.js";

const layout: LaneLayout = { subject: "orders", generation: 1, lanes: 12, hash: "fnv1a", mapping: "account" };

describe("parseIntake", () => {
  test.each([
    ["in.orders.{key}.*", "in.orders.*.*", 1, [2], false],
    ["sensors.*.{key}.*", "sensors.*.*.*", 2, [1, 3], false],
    ["a.{key}.>", "a.*.>", 1, [], true],
    ["a.*.b.{key}.*.>", "a.*.b.*.*.>", 2, [1, 3], true],
    ["a.*.*.{key}", "a.*.*.*", 3, [1, 2], false],
  ])("reads %s", (pattern, wildcard, keyWildcard, typeWildcards, typeTail) => {
    expect(parseIntake(pattern, "orders")).toEqual({
      pattern,
      wildcard,
      keyWildcard,
      typeWildcards,
      typeTail,
    });
  });

  test.each([
    ["", /must be a subject pattern/],
    [42, /must be a subject pattern/],
    ["in.orders.*.*", /exactly one token {key} and has 0/],
    ["in.{key}.{key}.*", /exactly one token {key} and has 2/],
    ["in.orders.{key}", /must have a \*/],
    ["in.x{key}.{key}.*", /brace/],
    ["in.>.{key}.*", /has a wildcard/],
    ["in.a*.{key}.*", /has a wildcard/],
    ["in..{key}.*", /is empty/],
    ["in.a b.{key}.*", /whitespace/],
    ["in.a\r\n.{key}.*", /whitespace/],
    ["{key}.telemetry.*", /first token must be a literal/],
    ["*.{key}", /first token must be a literal/],
    ["$SYS.{key}.*", /starts with \$/],
    ["_INBOX.{key}.*", /where replies go/],
    [`in.${"x".repeat(512)}.{key}.*`, /longer than 512 bytes/],
  ])("refuses %j", (pattern, message) => {
    const attempt = () => parseIntake(pattern as string, "orders");
    expect(attempt).toThrow(expect.objectContaining({ code: "INVALID_INTAKE" }));
    expect(attempt).toThrow(message);
  });

  test("reports every fault at once", () => {
    expect(() => parseIntake("orders.a b..*", "orders")).toThrow(/whitespace.*is empty.*has 0.*overlaps/);
  });

  test.each([
    ["orders.{key}.*", "orders"],
    ["orders.in.{key}.*", "orders"],
    ["orders.g2.{key}.*", "orders"],
    ["shop.*.{key}.*", "shop.orders"],
    ["shop.{key}.>", "shop.eu.orders"],
    ["shop.{key}.*.*", "shop.eu.orders"],
  ])("refuses %s, which overlaps the lanes of %s in some generation", (pattern, subject) => {
    expect(() => parseIntake(pattern, subject)).toThrow(new RegExp(`overlaps ${subject}\\.>`));
  });

  test.each([
    ["orders-in.{key}.*", "orders"],
    ["shop.{key}.*", "shop.eu.orders"],
    ["shop.*.in.{key}.*", "shop.orders.x"],
    ["in.orders.{key}.*", "orders"],
  ])("takes %s beside the lanes of %s", (pattern, subject) => {
    expect(parseIntake(pattern, subject).pattern).toBe(pattern);
  });
});

describe("intakeSubject", () => {
  test.each([
    [undefined, "created", "in.orders.customer-42.created"],
    ["sensors.*.{key}.*", "site 1.temp", "sensors.site%201.customer-42.temp"],
    ["a.{key}.>", "x.y.z", "a.customer-42.x.y.z"],
    ["a.*.{key}.>", "x.y.z", "a.x.customer-42.y.z"],
    ["a.{key}.b.*", "{key}", "a.customer-42.b.{key}"],
  ])("fills %s with the type %s", (intake, type, subject) => {
    const withIntake = intake === undefined ? layout : { ...layout, intake };
    expect(intakeSubject(withIntake, { key: "customer-42", type })).toBe(subject);
  });

  test("R03: what is given as the key stays one token", () => {
    expect(intakeSubject(layout, { key: "a.*.> \r\n{key}", type: "t" })).toBe(
      "in.orders.a%2E%2A%2E%3E%20%0D%0A{key}.t",
    );
  });

  test.each([
    [undefined, "a.b", /has 2 token\(s\).* takes 1/],
    ["sensors.*.{key}.*", "a", /has 1 token\(s\).* takes 2/],
    ["a.*.{key}.>", "x", /has 1 token\(s\).* takes 2 or more/],
  ])("refuses a type that does not fit %s", (intake, type, message) => {
    const attempt = () =>
      intakeSubject(intake === undefined ? layout : { ...layout, intake }, { key: "k", type });
    expect(attempt).toThrow(expect.objectContaining({ code: "INVALID_TYPE" }));
    expect(attempt).toThrow(message);
  });

  test("is refused where publishers choose the lane", () => {
    const publisher: LaneLayout = { ...layout, mapping: "publisher" };
    expect(() => intakeSubject(publisher, { key: "k", type: "t" })).toThrow(
      expect.objectContaining({ code: "INVALID_INTAKE" }),
    );
    expect(() => intakeWildcard(publisher)).toThrow(expect.objectContaining({ code: "INVALID_INTAKE" }));
  });
});

test("intakeWildcard is what the server listens on", () => {
  expect(intakeWildcard(layout)).toBe("in.orders.*.*");
  expect(intakeWildcard({ ...layout, intake: "a.*.{key}.>" })).toBe("a.*.*.>");
});
