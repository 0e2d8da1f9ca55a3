import { describe, expect, test } from "vitest";
import { hashKey, LANE_HASHES, type LaneHash, laneOf } from "./index.js";

describe("laneOf", () => {
  test.each([
    ["a", 4],
    ["customer-42", 10],
    ["order-1", 1],
    ["é", 9],
    ["e\u0301", 11],
    ["日本", 9],
    ["løp", 8],
  ])("R01, R02: %s is in lane %i of 12 by fnv1a", (key, lane) => {
    expect(laneOf(key, 12, "fnv1a")).toBe(lane);
  });

  test("uses murmur3 when no hash is named", () => {
    const keys = Array.from({ length: 100 }, (_, i) => `customer-${i}`);
    expect(keys.map((key) => laneOf(key, 4096))).toEqual(keys.map((key) => laneOf(key, 4096, "murmur3")));
    expect(keys.map((key) => hashKey(key))).toEqual(keys.map((key) => hashKey(key, "murmur3")));
  });

  test.each(LANE_HASHES)("takes 1 and 4096 lanes with %s", (hash) => {
    expect(laneOf("customer-42", 1, hash)).toBe(0);
    expect(laneOf("customer-42", 4096, hash)).toBe(hashKey("customer-42", hash) % 4096);
  });

  test.each([0, -1, 4097, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "12", null, undefined, 12n])(
    "refuses %s as a lane count",
    (lanes) => {
      expect(() => laneOf("a", lanes as number)).toThrow(expect.objectContaining({ code: "INVALID_LANES" }));
    },
  );

  test("refuses a hash it does not know, naming those it does", () => {
    const attempt = () => laneOf("a", 12, "md5" as LaneHash);
    expect(attempt).toThrow(expect.objectContaining({ code: "INVALID_HASH" }));
    expect(attempt).toThrow(/murmur3, murmur2, fnv1a.*"md5"/);
  });

  test("R04: refuses what is no key before it hashes", () => {
    for (const hash of LANE_HASHES) {
      expect(() => laneOf(null as unknown as string, 12, hash)).toThrow(
        expect.objectContaining({ code: "INVALID_KEY" }),
      );
      expect(() => hashKey("", hash)).toThrow(expect.objectContaining({ code: "INVALID_KEY" }));
    }
  });
});
