import { type LaneHash, laneOf } from "./lane-hash.js";

/** How a sample of keys spreads over the lanes. */
export interface LaneShares {
  /** Different keys. */
  readonly keys: number;
  /** Events, that is, keys with repeats. */
  readonly events: number;
  /** One entry per lane, by lane number. */
  readonly perLane: readonly { readonly keys: number; readonly events: number }[];
  /** The busiest lane's part of all events, 0 to 1; 0 for an empty sample. */
  readonly largestShare: number;
  /** The at most 10 keys with the most events, most first, each with its part of all events, 0 to 1. */
  readonly hotKeys: readonly { readonly key: string; readonly share: number }[];
}

/**
 * How a sample of keys spreads (R05): a few keys leave lanes empty, and one hot key makes one lane
 * busy, whatever the hash.
 *
 * @param keys one key per event, in any order; every different key is held in memory
 * @param lanes 1 to 4096
 * @param hash default `murmur3`
 * @throws PartitionerError INVALID_KEY, INVALID_LANES, INVALID_HASH
 */
export function laneShares(keys: Iterable<string>, lanes: number, hash: LaneHash = "murmur3"): LaneShares {
  laneOf("checks the arguments, also where the sample is empty", lanes, hash);
  const eventsOf = new Map<string, number>();
  let events = 0;
  for (const key of keys) {
    eventsOf.set(key, (eventsOf.get(key) ?? 0) + 1);
    events++;
  }
  const perLane = Array.from({ length: lanes }, () => ({ keys: 0, events: 0 }));
  for (const [key, count] of eventsOf) {
    const share = perLane[laneOf(key, lanes, hash)];
    if (share === undefined) continue;
    share.keys++;
    share.events += count;
  }
  const largest = perLane.reduce((most, lane) => Math.max(most, lane.events), 0);
  return {
    keys: eventsOf.size,
    events,
    perLane,
    largestShare: events === 0 ? 0 : largest / events,
    hotKeys: [...eventsOf]
      .sort(([, a], [, b]) => b - a)
      .slice(0, HOT_KEYS)
      .map(([key, count]) => ({ key, share: count / events })),
  };
}

const HOT_KEYS = 10;
