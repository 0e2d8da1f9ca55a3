/** Seeded random numbers: the same seed gives the same ones, on any machine. Mulberry32, good enough to choose faults by. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bf03635) >>> 0;
    for (let i = 0; i < 4; i++) this.next();
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** From `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<T>(list: readonly T[]): T {
    const picked = list[this.int(0, list.length - 1)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }

  hex(digits: number): string {
    let text = "";
    while (text.length < digits) text += this.int(0, 15).toString(16);
    return text;
  }

  /** Another, independent source: what is drawn from it does not shift what is drawn here. */
  fork(): SeededRandom {
    return new SeededRandom(this.int(1, 0x7fffffff));
  }
}
