import { describe, expect, test } from "vitest";
import { decodeType, encodeType } from "./index.js";

describe("types", () => {
  test.each([
    ["created", "created"],
    ["address.changed", "address.changed"],
    ["order placed.by *", "order%20placed.by%20%2A"],
    ["geändert", "geändert"],
    [">", "%3E"],
    ["%2E", "%252E"],
  ])("R03: %j is spelled %j and comes back", (type, encoded) => {
    expect(encodeType(type)).toBe(encoded);
    expect(decodeType(encoded)).toBe(type);
  });

  test.each(["", ".", "a.", ".a", "a..b", "\ud800", null, undefined, 42, {}])(
    "R03, R04: %j is refused as a type",
    (type) => {
      expect(() => encodeType(type as string)).toThrow(expect.objectContaining({ code: "INVALID_TYPE" }));
    },
  );

  test("takes 512 bytes and refuses one more", () => {
    const longest = `${"é".repeat(255)}.x`;
    expect(decodeType(encodeType(longest))).toBe(longest);
    expect(() => encodeType(`${longest}x`)).toThrow(/takes 513 bytes and 512 is the limit/);
    expect(() => decodeType(`${longest}x`)).toThrow(expect.objectContaining({ code: "INVALID_TOKEN" }));
  });

  test.each(["", "a.", "a..b", "%2e", "a%2Eb", "%2E", "%41", "a b", "*", "a.>", "\ud800", undefined])(
    "%j is refused as the spelling of a type",
    (encoded) => {
      expect(() => decodeType(encoded as string)).toThrow(expect.objectContaining({ code: "INVALID_TOKEN" }));
    },
  );
});
