import { describe, expect, test } from "vitest";
import { decodeKey, encodeKey, PartitionerError } from "./index.js";

describe("encodeKey", () => {
  test.each([
    ["customer-42", "customer-42"],
    ["user@example.com", "user@example%2Ecom"],
    ["løp 日本", "løp%20日本"],
    ["a.b", "a%2Eb"],
    ["*", "%2A"],
    [">", "%3E"],
    ["100%", "100%25"],
    ["\t", "%09"],
    ["x\r\nPUB y 0", "x%0D%0APUB%20y%200"],
    ["\0", "%00"],
    ["\x7f", "%7F"],
    ["\x80", "\x80"],
    ["{{wildcard(1)}}", "{{wildcard(1)}}"],
    ["$1", "$1"],
  ])("R03: %j becomes %j and comes back", (key, token) => {
    expect(encodeKey(key)).toBe(token);
    expect(decodeKey(token)).toBe(key);
  });

  test("R02: composed and decomposed forms are different keys", () => {
    expect(encodeKey("é")).not.toBe(encodeKey("e\u0301"));
  });

  test.each([
    ["null", null, /is null;/],
    ["undefined", undefined, /is undefined;/],
    ["the empty string", "", /is the empty string;/],
    ["a number", 42, /is the number 42;/],
    ["a bigint", 42n, /is the bigint 42n;/],
    ["NaN", Number.NaN, /is NaN;/],
    ["an object", {}, /is an object;/],
    ["an array", ["a"], /is a Array object;/],
    ["a Buffer", Buffer.from("a"), /is a Buffer object;/],
    ["a String object", new String("a"), /is a String object;/],
    ["a symbol", Symbol("a"), /is a symbol;/],
    ["a function", () => "a", /is a function;/],
    ["a lone high surrogate", "a\ud800", /"a\\ud800", which has a lone surrogate/],
    ["a lone low surrogate", "\udc00a", /lone surrogate/],
  ])("R03, R04: refuses %s, saying what was given and what to do", (_name, key, message) => {
    const attempt = () => encodeKey(key as string);
    expect(attempt).toThrow(expect.objectContaining({ code: "INVALID_KEY" }));
    expect(attempt).toThrow(message);
    expect(attempt).toThrow(/pass the id that names the customer/);
  });

  test("R04: a key whose methods throw is refused all the same", () => {
    const hostile = new Proxy(
      {},
      {
        get() {
          throw new Error("get");
        },
        getPrototypeOf() {
          throw new Error("prototype");
        },
      },
    );
    expect(() => encodeKey(hostile as string)).toThrow(/this is an object;/);
  });

  test.each([
    ["visible ASCII", "x".repeat(512), "x"],
    ["two bytes a character", "é".repeat(256), "x"],
    ["four bytes a character", "😀".repeat(128), "x"],
    ["three bytes a character", `${"日".repeat(170)}xx`, "x"],
    ["three bytes an encoded character", `${".".repeat(170)}xx`, "x"],
  ])("takes a token of 512 bytes and refuses one more: %s", (_name, key, more) => {
    expect(new TextEncoder().encode(encodeKey(key)).length).toBe(512);
    expect(decodeKey(encodeKey(key))).toBe(key);
    expect(() => encodeKey(key + more)).toThrow(expect.objectContaining({ code: "INVALID_KEY" }));
    expect(() => encodeKey(key + more)).toThrow(/takes 513 bytes .* 512 is the limit/);
  });

  test("R03: the message about a 5,000-character key stays short", () => {
    expect(() => encodeKey("x".repeat(5000))).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^.{1,250}$/) }),
    );
  });
});

describe("decodeKey", () => {
  test.each([
    ["%41", "a needless escape"],
    ["%2e", "a lower-case escape"],
    ["%C3%A9", "escaped bytes outside ASCII"],
    ["%FF", "an escaped byte that is no UTF-8"],
    ["100%", "a bare percent sign"],
    ["%2", "half an escape"],
    ["a b", "a raw space"],
    ["a.b", "a raw dot"],
    ["*", "a wildcard"],
    ["\ud800", "a lone surrogate"],
    ["", "nothing"],
    ["x".repeat(513), "513 bytes"],
  ])("refuses %j: %s", (token) => {
    expect(() => decodeKey(token)).toThrow(expect.objectContaining({ code: "INVALID_TOKEN" }));
  });

  test("refuses what is no string", () => {
    expect(() => decodeKey(undefined as unknown as string)).toThrow(
      expect.objectContaining({ code: "INVALID_TOKEN" }),
    );
  });
});

describe("PartitionerError", () => {
  test("is known by a brand, not by its class", () => {
    const brand = Symbol.for("@lanekeeper/partitioner/PartitionerError");
    expect(PartitionerError.is(new PartitionerError("INVALID_KEY", "m"))).toBe(true);
    expect(PartitionerError.is(Object.assign(new Error("of another copy"), { [brand]: true }))).toBe(true);
    expect(PartitionerError.is(new Error("m"))).toBe(false);
    expect(PartitionerError.is({ code: "INVALID_KEY" })).toBe(false);
    expect(PartitionerError.is(null)).toBe(false);
    expect(PartitionerError.is(undefined)).toBe(false);
  });

  test("carries its cause", () => {
    const cause = new Error("first");
    expect(new PartitionerError("INVALID_KEY", "m", { cause }).cause).toBe(cause);
    expect(new PartitionerError("INVALID_KEY", "m")).not.toHaveProperty("cause");
  });
});
