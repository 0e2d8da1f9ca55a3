/**
 * How long to wait for answers to publishes, from how long they took so far. Milliseconds throughout.
 * A retry too early costs a duplicate that the server recognises, one too late delays the key.
 */
export class PublishWait {
  readonly #longest: number;
  #latency = 0;
  #shortest = Number.POSITIVE_INFINITY;

  /** @param timeoutMs of a publish; a lost answer is to be noticed well within it */
  constructor(timeoutMs: number) {
    this.#longest = Math.max(timeoutMs / 4, 25);
  }

  /** An answer to a first attempt took `ms`. */
  answered(ms: number): void {
    this.#latency += (ms - this.#latency) / 8;
    if (ms < this.#shortest) this.#shortest = ms;
  }

  /** Whether even the fastest answer so far took long: that is the way, and not what waits at the server. */
  get far(): boolean {
    return this.#shortest >= longWay && this.#shortest < Number.POSITIVE_INFINITY;
  }

  /** Until the answer to attempt number `attempt` (from 1) is overdue. */
  forAnswer(attempt: number): number {
    const first = Math.min(Math.max(this.#latency * 4, shortestAnswer), longestAnswer);
    return Math.min(first * 2 ** Math.min(attempt - 1, 4), longestAnswer, this.#longest);
  }

  /** Before trying again after setback number `setback` (from 1). */
  afterSetback(setback: number): number {
    return Math.min(100 * 2 ** Math.min(setback - 1, 4), 1_000, this.#longest);
  }
}

const longWay = 10;
const shortestAnswer = 500;
const longestAnswer = 8_000;

/**
 * For how long after its first attempt an event may be sent again with the same id. The server forgets an id one
 * window after it stored the event, so half of the window is left for a retry to get there, and P1 holds on any
 * network that is not slower than that.
 */
export function resendSpan(duplicateWindowMs: number): number {
  return duplicateWindowMs / 2;
}
