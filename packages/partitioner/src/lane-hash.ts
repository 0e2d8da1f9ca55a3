import murmurhash from "murmurhash";
import { describeValue } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import { encodeKey } from "./key-token.js";
import { MAX_TOKEN_BYTES } from "./token-codec.js";

/**
 * How a key becomes a number.
 *
 * - `murmur3`: x86_32, seed 0, over the key's UTF-8 bytes.
 * - `murmur2`: Kafka's default partitioner: seed 0x9747b28c, over the key's UTF-8 bytes, sign bit masked.
 * - `fnv1a`: 32-bit, over the key token's bytes; exactly nats-server's `{{partition(n,i)}}`.
 */
export type LaneHash = "murmur3" | "murmur2" | "fnv1a";

/** Every hash; the first is the default. */
export const LANE_HASHES: readonly LaneHash[] = Object.freeze(["murmur3", "murmur2", "fnv1a"] as const);

/** The most lanes a layout can have. */
export const MAX_LANES = 4096;

/**
 * The lane of a key: `hash mod lanes`, unsigned (R01).
 *
 * @param lanes 1 to 4096
 * @param hash default `murmur3`
 * @returns 0 to lanes − 1
 * @throws PartitionerError INVALID_KEY, INVALID_LANES, INVALID_HASH
 */
export function laneOf(key: string, lanes: number, hash: LaneHash = "murmur3"): number {
  if (!isLaneCount(lanes)) {
    throw new PartitionerError(
      "INVALID_LANES",
      `the lane count must be a whole number from 1 to ${MAX_LANES}, and this is ${describeValue(lanes)}`,
    );
  }
  return hashOf(key, encodeKey(key), hash) % lanes;
}

/**
 * The number that {@link laneOf} takes modulo the lane count: 0 to 2³² − 1, for `murmur2` to 2³¹ − 1
 * (Kafka masks the sign bit).
 *
 * @throws PartitionerError INVALID_KEY, INVALID_HASH
 */
export function hashKey(key: string, hash: LaneHash = "murmur3"): number {
  return hashOf(key, encodeKey(key), hash);
}

/** The same for a key whose token is at hand; neither is checked again. */
export function hashOf(key: string, token: string, hash: LaneHash): number {
  switch (hash) {
    case "fnv1a":
      return fnv1a(token);
    case "murmur3":
      return murmurhash.v3(utf8(key), 0);
    case "murmur2":
      return murmurhash.v2(utf8(key), KAFKA_SEED) & 0x7fffffff;
    default:
      throw new PartitionerError(
        "INVALID_HASH",
        `the hash must be one of ${LANE_HASHES.join(", ")}, and this is ${describeValue(hash)}`,
      );
  }
}

/** True for 1 to 4096. */
export function isLaneCount(lanes: unknown): lanes is number {
  return Number.isInteger(lanes) && (lanes as number) >= 1 && (lanes as number) <= MAX_LANES;
}

const KAFKA_SEED = 0x9747b28c;
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

const encoder = new TextEncoder();
const scratch = new Uint8Array(MAX_TOKEN_BYTES);

/**
 * The bytes of a checked key or token, which are at most 512; they hold until the next call.
 * The murmurhash package would make an encoder and an array for every string.
 */
function utf8(text: string): Uint8Array {
  return scratch.subarray(0, encoder.encodeInto(text, scratch).written);
}

function fnv1a(token: string): number {
  let hash = FNV_OFFSET;
  for (let i = 0; i < token.length; i++) {
    const unit = token.charCodeAt(i);
    if (unit > 0x7f) return fnv1aBytes(utf8(token));
    hash = Math.imul(hash ^ unit, FNV_PRIME);
  }
  return hash >>> 0;
}

function fnv1aBytes(bytes: Uint8Array): number {
  let hash = FNV_OFFSET;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return hash >>> 0;
}
