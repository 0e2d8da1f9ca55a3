import { keyName } from "./key-sequence.js";

/** The data of every event in the benchmarks: about 130 bytes of JSON. */
export interface BenchData {
  /** Number of the key, from 0. */
  readonly k: number;
  /** Place among the key's events, from 1: what the order checks look at. */
  readonly n: number;
  /** When it was meant to be sent, in milliseconds of `monotonicMs()`; 0 where nobody asks. */
  readonly at: number;
  readonly customer: string;
  readonly note: string;
}

export type BenchEvents = { placed: BenchData };

export const EVENT_TYPE = "placed";

const BYTES = 130;

/** The next event of each key; one instance per stream. */
export class EventMaker {
  readonly #counts: Uint32Array;

  constructor(keys: number) {
    this.#counts = new Uint32Array(keys);
  }

  next(key: number, at = 0): BenchData {
    const n = (this.#counts[key] ?? 0) + 1;
    this.#counts[key] = n;
    return { k: key, n, at, customer: keyName(key), note: PADDING };
  }
}

const PADDING = "x".repeat(
  BYTES - JSON.stringify({ k: 100, n: 100, at: 0, customer: keyName(100), note: "" }).length,
);

/** Milliseconds of the machine's monotonic clock: the same in all its processes. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1_000_000;
}
