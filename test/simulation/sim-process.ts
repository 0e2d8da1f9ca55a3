import type { Clock, Timer } from "../../packages/core/src/runtime/clock.js";
import type { Timeline } from "./timeline.js";

/** Wall time at the beginning of every simulation. */
export const wallStart = Date.UTC(2026, 0, 1);

interface ProcessTimer {
  /** By the process's own monotonic clock. */
  readonly at: number;
  readonly run: () => void;
  stopped: boolean;
}

/**
 * One simulated process: its clock, its timers, and what arrives for it. While it is frozen nothing of it runs; when it is
 * thawed what has arrived comes first and the timers that are due after that, as in Node.js.
 */
export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #timeline: Timeline;
  #state: "running" | "frozen" | "dead" = "running";
  /** Monotonic time stands still while the machine is suspended; wall time never does. */
  #monotonicLag = 0;
  #frozen: { since: number; suspended: boolean } | undefined;
  readonly #arrived: (() => void)[] = [];
  readonly #due: ProcessTimer[] = [];
  readonly #deathWatch: (() => void)[] = [];

  constructor(name: string, timeline: Timeline) {
    this.name = name;
    this.#timeline = timeline;
    this.clock = {
      now: () => this.#monotonic(),
      wall: () => wallStart + timeline.now,
      after: (ms, run) => this.#after(ms, run),
    };
  }

  get state(): "running" | "frozen" | "dead" {
    return this.#state;
  }

  get alive(): boolean {
    return this.#state !== "dead";
  }

  /** Something arrived: it runs now, or when the process is thawed, or never. */
  receive(run: () => void): void {
    if (this.#state === "frozen") this.#arrived.push(run);
    else if (this.#state === "running") this.#enter(run);
  }

  /** `suspended`: with its machine, so that its monotonic clock stands still. */
  freeze(suspended: boolean): void {
    if (this.#state !== "running") return;
    this.#state = "frozen";
    this.#frozen = { since: this.#timeline.now, suspended };
  }

  thaw(): void {
    if (this.#state !== "frozen" || this.#frozen === undefined) return;
    const { since, suspended } = this.#frozen;
    if (suspended) this.#monotonicLag += this.#timeline.now - since;
    this.#state = "running";
    this.#frozen = undefined;
    // One after the other, so that promises settle in between.
    for (const run of this.#arrived.splice(0)) this.#timeline.after(0, () => this.receive(run));
    for (const timer of this.#due.splice(0)) this.#timeline.after(0, () => this.#fire(timer));
  }

  kill(): void {
    this.#state = "dead";
    this.#arrived.length = 0;
    this.#due.length = 0;
    for (const told of this.#deathWatch.splice(0)) told();
  }

  onDeath(told: () => void): void {
    this.#deathWatch.push(told);
  }

  #monotonic(): number {
    const standing = this.#frozen?.suspended ? this.#timeline.now - this.#frozen.since : 0;
    return 1_000 + this.#timeline.now - this.#monotonicLag - standing;
  }

  #after(ms: number, run: () => void): Timer {
    // As setTimeout: never at once, never early.
    const timer: ProcessTimer = { at: this.#monotonic() + Math.max(ms, 1), run, stopped: false };
    this.#wait(timer);
    return {
      stop: () => {
        timer.stopped = true;
      },
    };
  }

  #wait(timer: ProcessTimer): void {
    this.#timeline.after(Math.max(timer.at - this.#monotonic(), 0), () => this.#fire(timer));
  }

  #fire(timer: ProcessTimer): void {
    if (timer.stopped || this.#state === "dead") return;
    if (this.#state === "frozen") this.#due.push(timer);
    else if (timer.at > this.#monotonic() + 1e-6) this.#wait(timer);
    else this.#enter(timer.run);
  }

  #enter(run: () => void): void {
    this.#timeline.enter(this);
    run();
  }
}
