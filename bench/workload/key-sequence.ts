import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

/** `uniform`: every key is as likely as any other. `zipf`: the key of rank r has a share in proportion to 1/r. */
export type KeyDistribution = "uniform" | "zipf";

export interface SequenceOptions {
  readonly keys: number;
  readonly messages: number;
  readonly distribution: KeyDistribution;
  readonly seed: number;
}

/** Whose turn it is, event by event: numbers of keys, from 0. The same options give the same sequence. */
export function keySequence(options: SequenceOptions): Uint32Array {
  const generator = xoroshiro128plus(options.seed);
  const upTo = cumulativeShares(options.keys, options.distribution);
  return Uint32Array.from({ length: options.messages }, () => firstAbove(upTo, uniformFloat64(generator)));
}

/** The share of the most frequent key, from 0 to 1. */
export function largestShare(keys: number, distribution: KeyDistribution): number {
  return cumulativeShares(keys, distribution)[0] ?? 0;
}

export function keyName(key: number): string {
  return `customer-${key}`;
}

function cumulativeShares(keys: number, distribution: KeyDistribution): Float64Array {
  const shares = Float64Array.from({ length: keys }, (_, key) =>
    distribution === "zipf" ? 1 / (key + 1) : 1,
  );
  const total = shares.reduce((sum, share) => sum + share, 0);
  let sum = 0;
  return shares.map((share) => {
    sum += share / total;
    return sum;
  });
}

function firstAbove(upTo: Float64Array, value: number): number {
  let low = 0;
  let high = upTo.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((upTo[middle] ?? 1) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
