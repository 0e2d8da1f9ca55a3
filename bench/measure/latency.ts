import { build, type Histogram } from "hdr-histogram-js";

const LONGEST_MS = 600_000;

/** Times in an HDR histogram: three significant digits, from 1 µs to 10 minutes; longer ones count as that. */
export class Latencies {
  readonly #histogram: Histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: LONGEST_MS * 1_000,
    numberOfSignificantValueDigits: 3,
    bitBucketSize: 32,
  });

  record(ms: number): void {
    this.#histogram.recordValue(Math.max(1, Math.round(Math.min(ms, LONGEST_MS) * 1_000)));
  }

  get count(): number {
    return this.#histogram.totalCount;
  }

  /** In milliseconds; `percent` from 0 to 100. */
  percentile(percent: number): number {
    return this.#histogram.getValueAtPercentile(percent) / 1_000;
  }
}
