import type { SettledMemory } from "./lane-machine.js";

/**
 * The newest events of a lane that were settled here, so that one which comes again is acked again and not run again.
 * Bounded: beyond `limit` the oldest are forgotten, and would be run again (O4 allows it). Each sequence is remembered
 * with the event's time stamp, because a power cut can make a stream use a sequence twice.
 */
export class CompletedMemory implements SettledMemory {
  readonly #limit: number;
  readonly #stamps = new Map<number, string>();

  constructor(limit = 256) {
    this.#limit = limit;
  }

  settled(seq: number, stamp: string): void {
    this.#stamps.delete(seq);
    this.#stamps.set(seq, stamp);
    if (this.#stamps.size > this.#limit) {
      for (const oldest of this.#stamps.keys()) {
        this.#stamps.delete(oldest);
        break;
      }
    }
  }

  delivered(): void {
    // Other workers settle events of the lane too: what was delivered here says nothing of the rest.
  }

  isSettled(seq: number, stamp: string): boolean {
    return this.#stamps.get(seq) === stamp;
  }

  clear(): void {
    this.#stamps.clear();
  }
}
