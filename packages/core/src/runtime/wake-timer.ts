import type { Clock, Timer } from "./clock.js";

/** One timer for any number of wishes: it fires at the earliest, and whoever is woken wishes again. */
export class WakeTimer {
  readonly #clock: Clock;
  readonly #wake: (now: number) => void;
  #set: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock, wake: (now: number) => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  /** `at`: monotonic milliseconds. Never wakes earlier. */
  set(at: number): void {
    if (this.#set !== undefined && this.#set.at <= at) return;
    this.#set?.timer.stop();
    const timer = this.#clock.after(Math.max(at - this.#clock.now(), 0), () => {
      this.#set = undefined;
      const now = this.#clock.now();
      // Timers count whole milliseconds and may fire up to two of them early.
      if (now < at) this.set(at);
      else this.#wake(now);
    });
    this.#set = { at, timer };
  }

  stop(): void {
    this.#set?.timer.stop();
    this.#set = undefined;
  }
}
