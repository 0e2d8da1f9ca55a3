import { describe, expect, test } from "vitest";
import { BoundedCache } from "./bounded-cache.js";

describe("BoundedCache", () => {
  test.each([2, 3, 10, 101])("never holds more than %i entries", (maxEntries) => {
    const cache = new BoundedCache<object>(maxEntries);
    for (let i = 0; i < 1_000; i++) {
      cache.set(`k${i}`, {});
      cache.get(`k${i - (i % 7)}`);
      expect(cache.size).toBeLessThanOrEqual(maxEntries);
    }
  });

  test("keeps what is used while others come and go", () => {
    const cache = new BoundedCache<object>(10);
    const kept = {};
    cache.set("kept", kept);
    for (let i = 0; i < 1_000; i++) {
      cache.set(`k${i}`, {});
      expect(cache.get("kept")).toBe(kept);
    }
    expect(cache.get("k0")).toBeUndefined();
  });
});
