import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  decodeKey,
  decodeType,
  encodeKey,
  encodeType,
  hashKey,
  LANE_HASHES,
  type LaneHash,
  laneOf,
} from "./index.js";

interface Vectors {
  laneCounts: number[];
  keys: { key: string; token: string; hashes: Record<LaneHash, number>; lanes: Record<LaneHash, number[]> }[];
  types: { type: string; encoded: string }[];
  notKeyTokens: string[];
}

const file = fileURLToPath(new URL("../vectors.json", import.meta.url));
const generator = fileURLToPath(new URL("../vectors.py", import.meta.url));
const vectors: Vectors = JSON.parse(readFileSync(file, "utf8"));
const named = vectors.keys.map((vector) => ({ name: shown(vector.key), ...vector }));

describe("vectors.json, which other languages test against", () => {
  test("covers every kind of key", () => {
    const keys = vectors.keys.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys).toEqual(
      expect.arrayContaining([
        "a",
        "hello",
        "customer-42",
        "order-1",
        "a b",
        "a.b",
        "%41",
        "é",
        "e\u0301",
        "løp",
        "日本",
        "😀",
      ]),
    );
    expect(keys.some((key) => new TextEncoder().encode(encodeKey(key)).length === 512)).toBe(true);
    expect(vectors.laneCounts).toEqual([1, 12, 64, 4096]);
  });

  test.each(named)(
    "R01, R02: $name has the published token, hashes and lanes",
    ({ key, token, hashes, lanes }) => {
      expect(encodeKey(key)).toBe(token);
      expect(decodeKey(token)).toBe(key);
      for (const hash of LANE_HASHES) {
        expect(hashKey(key, hash)).toBe(hashes[hash]);
        expect(vectors.laneCounts.map((count) => laneOf(key, count, hash))).toEqual(lanes[hash]);
      }
    },
  );

  test.each(named)("an implementation of another make agrees on $name", ({ key, token, hashes }) => {
    const bytes = Buffer.from(key, "utf8");
    expect(hashes).toEqual({
      murmur3: textbookMurmur3(bytes, 0n),
      murmur2: textbookMurmur2(bytes, 0x9747b28cn) & 0x7fffffff,
      fnv1a: textbookFnv1a(Buffer.from(token, "utf8")),
    });
  });

  test.each(vectors.types)("the type $type has the published spelling", ({ type, encoded }) => {
    expect(encodeType(type)).toBe(encoded);
    expect(decodeType(encoded)).toBe(type);
  });

  test.each(vectors.notKeyTokens.map((token) => ({ name: shown(token), token })))(
    "the token $name is refused",
    ({ token }) => {
      expect(() => decodeKey(token)).toThrow(expect.objectContaining({ code: "INVALID_TOKEN" }));
    },
  );

  const python = spawnSync("python3", ["--version"]).status === 0;
  test.skipIf(!python)(
    "are what the Python implementation beside them writes (skipped where python3 is not found)",
    () => {
      const written: unknown = JSON.parse(execFileSync("python3", [generator], { encoding: "utf8" }));
      expect(written).toEqual(vectors);
    },
  );
});

describe("reference values published by others", () => {
  test("murmur3 x86_32, seed 0", () => {
    expect(hashKey("hello", "murmur3")).toBe(613153351);
  });

  test.each([
    // UtilsTest of Kafka's clients; signed there, and masked by its partitioner.
    ["21", -973932308],
    ["foobar", -790332482],
    ["a-little-bit-long-string", -985981536],
    ["a-little-bit-longer-string", -1486304829],
    ["lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971],
    ["abc", 479470107],
  ])("murmur2 as Kafka publishes it: %s", (key, signed) => {
    expect(hashKey(key, "murmur2")).toBe(signed & 0x7fffffff);
  });

  test.each([
    ["foo", 3],
    ["baz", 0],
    ["qux", 9],
  ])("fnv1a as nats-server's tests publish it: %s is partition %i of 10", (key, lane) => {
    expect(laneOf(key, 10, "fnv1a")).toBe(lane);
  });

  test("fnv1a of customer-42, which a signed remainder would spoil", () => {
    expect(hashKey("customer-42", "fnv1a")).toBe(4268273086);
  });
});

/** A text for a test's name: one line, not too long. */
function shown(text: string): string {
  return JSON.stringify(text).slice(0, 40);
}

/** BigInt and modulo throughout: nothing in common with the code under test. */
const MASK = 0xffffffffn;
const rotate = (x: bigint, by: bigint) => ((x << by) | (x >> (32n - by))) & MASK;

function* words(bytes: Buffer): Generator<{ word: bigint; whole: boolean }> {
  for (let at = 0; at < bytes.length; at += 4) {
    const part = bytes.subarray(at, at + 4);
    yield { word: BigInt(part.readUIntLE(0, part.length)), whole: part.length === 4 };
  }
}

function textbookMurmur3(bytes: Buffer, seed: bigint): number {
  let h = seed;
  for (const { word, whole } of words(bytes)) {
    h ^= (rotate((word * 0xcc9e2d51n) & MASK, 15n) * 0x1b873593n) & MASK;
    if (whole) h = (rotate(h, 13n) * 5n + 0xe6546b64n) & MASK;
  }
  h ^= BigInt(bytes.length);
  h = ((h ^ (h >> 16n)) * 0x85ebca6bn) & MASK;
  h = ((h ^ (h >> 13n)) * 0xc2b2ae35n) & MASK;
  return Number(h ^ (h >> 16n));
}

function textbookMurmur2(bytes: Buffer, seed: bigint): number {
  const m = 0x5bd1e995n;
  let h = seed ^ BigInt(bytes.length);
  for (const { word, whole } of words(bytes)) {
    if (whole) {
      const k = (word * m) & MASK;
      h = ((h * m) & MASK) ^ (((k ^ (k >> 24n)) * m) & MASK);
    } else {
      h = ((h ^ word) * m) & MASK;
    }
  }
  h = ((h ^ (h >> 13n)) * m) & MASK;
  return Number(h ^ (h >> 15n));
}

function textbookFnv1a(bytes: Buffer): number {
  return Number(bytes.reduce((h, byte) => ((h ^ BigInt(byte)) * 16777619n) & MASK, 2166136261n));
}
