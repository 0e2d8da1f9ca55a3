import { describe, expect, test } from "vitest";
import { laneOf, laneShares } from "./index.js";

const orders = (count: number) => Array.from({ length: count }, (_, i) => `order-${i}`);

describe("laneShares", () => {
  test("R05: with 20 keys over 16 lanes it reports the lanes that stay empty", () => {
    const shares = laneShares(orders(20), 16, "fnv1a");
    const used = new Set(orders(20).map((key) => laneOf(key, 16, "fnv1a")));
    expect(used.size).toBeLessThan(16);
    expect(shares.perLane.flatMap(({ keys }, lane) => (keys === 0 ? [lane] : []))).toEqual(
      Array.from({ length: 16 }, (_, lane) => lane).filter((lane) => !used.has(lane)),
    );
  });

  test("R05: order-0 to order-9999 spread to 619 to 632 keys in every one of 16 lanes with fnv1a", () => {
    const { perLane } = laneShares(orders(10_000), 16, "fnv1a");
    expect(perLane).toHaveLength(16);
    const counts = perLane.map(({ keys }) => keys);
    expect(Math.min(...counts)).toBe(619);
    expect(Math.max(...counts)).toBe(632);
  });

  test("R05: one key with 90 % of the events is named, with the share of its lane", () => {
    const shares = laneShares([...Array.from({ length: 900 }, () => "hot"), ...orders(100)], 64);
    expect(shares).toMatchObject({ keys: 101, events: 1_000 });
    expect(shares.hotKeys[0]).toEqual({ key: "hot", share: 0.9 });
    expect(shares.hotKeys).toHaveLength(10);
    expect(shares.largestShare).toBeGreaterThanOrEqual(0.9);
    expect(shares.perLane[laneOf("hot", 64)]?.events).toBe(shares.largestShare * 1_000);
  });

  test("lists the hottest keys first", () => {
    const keys = ["c", "a", "b", "a", "b", "a"];
    expect(laneShares(keys, 4).hotKeys).toEqual([
      { key: "a", share: 3 / 6 },
      { key: "b", share: 2 / 6 },
      { key: "c", share: 1 / 6 },
    ]);
  });

  test("counts nothing in an empty sample", () => {
    expect(laneShares([], 2)).toEqual({
      keys: 0,
      events: 0,
      perLane: [
        { keys: 0, events: 0 },
        { keys: 0, events: 0 },
      ],
      largestShare: 0,
      hotKeys: [],
    });
  });

  test("refuses bad arguments, also with an empty sample", () => {
    expect(() => laneShares([], 0)).toThrow(expect.objectContaining({ code: "INVALID_LANES" }));
    expect(() => laneShares([], 1, "md5" as "murmur3")).toThrow(
      expect.objectContaining({ code: "INVALID_HASH" }),
    );
    expect(() => laneShares([null as unknown as string], 1)).toThrow(
      expect.objectContaining({ code: "INVALID_KEY" }),
    );
  });
});
