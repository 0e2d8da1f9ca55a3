import type { Clock } from "./clock.js";
import type { Turn } from "./lane-host.js";

/** Milliseconds for which handlers may start one after the other before the event loop goes round. */
const roundMs = 5;

/**
 * When handlers may start. Those that end at once start the next ones; beats, in-progress signals and reads must not wait
 * for all that is in hand, so the event loop goes round after a few milliseconds. They count from when it last went round:
 * an async handler that only computes ends in a microtask, and starts the next one from there.
 */
export class HandlerTurns {
  readonly #clock: Pick<Clock, "now">;
  readonly #soon: (run: () => void) => void;
  #waiting: Turn[] = [];
  #taking = false;
  /** When the event loop is to go round before another handler starts; undefined: nothing has started since it did. */
  #roundUntil: number | undefined;

  /** @param soon calls what it is given once the event loop has gone round */
  constructor(clock: Pick<Clock, "now">, soon: (run: () => void) => void) {
    this.#clock = clock;
    this.#soon = soon;
  }

  /** Takes `turn` at once, or in its turn behind those that wait. */
  add(turn: Turn): void {
    if (this.#taking || this.#waiting.length > 0 || !this.#mayStart()) {
      this.#waiting.push(turn);
      return;
    }
    this.#taking = true;
    try {
      turn.take(false);
    } finally {
      this.#taking = false;
    }
    if (this.#waiting.length > 0) this.#takeWaiting();
  }

  #takeWaiting(): void {
    const turns = this.#waiting;
    let next = 0;
    this.#taking = true;
    try {
      while (next < turns.length && this.#mayStart()) turns[next++]?.take(true);
    } finally {
      this.#taking = false;
      turns.splice(0, next);
    }
  }

  #mayStart(): boolean {
    if (this.#roundUntil !== undefined) return this.#clock.now() < this.#roundUntil;
    this.#roundUntil = this.#clock.now() + roundMs;
    this.#soon(() => {
      this.#roundUntil = undefined;
      if (this.#waiting.length > 0) this.#takeWaiting();
    });
    return true;
  }
}
