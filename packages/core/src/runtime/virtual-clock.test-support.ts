import type { Clock, Timer } from "./clock.js";

interface Due {
  readonly at: number;
  readonly run: () => void;
}

/** A clock that a test moves. Monotonic time begins at 1,000,000, wall time at 2026-01-01; both move together, unless told. */
export class VirtualClock implements Clock {
  #now = 1_000_000;
  #wall = Date.UTC(2026, 0, 1);
  readonly #timers = new Set<Due>();

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wall;
  }

  after(ms: number, run: () => void): Timer {
    // As setTimeout does: what does not fit into 31 bits fires at once.
    const due: Due = { at: this.#now + (ms > 2 ** 31 - 1 ? 1 : ms), run };
    this.#timers.add(due);
    return { stop: () => void this.#timers.delete(due) };
  }

  /** Timers that wait. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Runs every timer that falls due, each at its own time, and lets promises settle in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#move(next.at - this.#now);
      this.#timers.delete(next);
      next.run();
      await settled();
    }
    this.#move(end - this.#now);
    await settled();
  }

  /** Time goes by and no timer runs: a frozen process, just thawed. */
  freeze(ms: number): void {
    this.#move(ms);
  }

  /** Only the wall clock moves: a machine that was suspended, where monotonic time stands still meanwhile. */
  suspend(ms: number): void {
    this.#wall += ms;
  }

  #move(ms: number): void {
    if (ms <= 0) return;
    this.#now += ms;
    this.#wall += ms;
  }

  #next(end: number): Due | undefined {
    let next: Due | undefined;
    for (const due of this.#timers) {
      if (due.at <= end && (next === undefined || due.at < next.at)) next = due;
    }
    return next;
  }
}

/** Lets every promise that can settle do so: macrotasks come after all microtasks. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
