import { expect, test } from "vitest";
import { bucketKeys, defaultBucket, readRecordKey } from "./bucket-keys.js";

test("every record's key says again what it stands for", () => {
  expect(readRecordKey("g", bucketKeys.group("g"))).toEqual({ type: "group" });
  expect(readRecordKey("g", bucketKeys.member("g", "id"))).toEqual({ type: "member", id: "id" });
  expect(readRecordKey("g", bucketKeys.lane("g", 2, 17))).toEqual({ type: "lane", generation: 2, lane: 17 });
});

test("R42: keys of another group, also one whose name begins alike, are not this group's", () => {
  expect(readRecordKey("g", bucketKeys.lane("g-2", 1, 1))).toBeUndefined();
  expect(bucketKeys.group("g-2").startsWith(bucketKeys.prefix("g"))).toBe(false);
  expect(readRecordKey("g", "g.lane.1")).toBeUndefined();
  expect(readRecordKey("g", "g.member")).toBeUndefined();
});

test("streams whose names differ have buckets whose names differ, in the characters a bucket may have", () => {
  const streams = [
    "ORDERS",
    "ORDERS=",
    "ORDERS+",
    "ORDERS-2b-",
    "x-ab+",
    "x«2b-",
    "ÖRDERS",
    "orders",
    "a_b",
    "a-b",
  ];
  const buckets = streams.map(defaultBucket);
  expect(new Set(buckets).size).toBe(streams.length);
  for (const bucket of buckets) expect(bucket).toMatch(/^[A-Za-z0-9_-]+$/);
});
