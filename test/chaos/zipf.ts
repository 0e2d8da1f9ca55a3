import type { SeededRandom } from "../harness/seeded-random.js";

/** Draws from 0 to `count` − 1 with Zipf popularity: number k is drawn in proportion to 1 / (k + 1). */
export class Zipf {
  /** Cumulative weights. */
  readonly #sums: readonly number[];
  readonly #random: SeededRandom;

  constructor(count: number, random: SeededRandom) {
    let sum = 0;
    this.#sums = Array.from({ length: count }, (_, index) => {
      sum += 1 / (index + 1);
      return sum;
    });
    this.#random = random;
  }

  draw(): number {
    const at = this.#random.next() * (this.#sums.at(-1) ?? 0);
    let low = 0;
    let high = this.#sums.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sums[middle] ?? 0) > at) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
