import type { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Clock, Timer } from "./clock.js";
import type { Notify } from "./notifier.js";

/**
 * What is wrong with a worker right now, by cause. A fault that lasts longer than its grace makes the worker unhealthy;
 * it is healthy again when every fault is cleared. Both changes are told.
 */
export class Health {
  readonly #clock: Clock;
  readonly #notify: Notify;
  readonly #faults = new Map<string, { error: LanekeeperError; timer: Timer | undefined }>();
  #stopped = false;

  constructor(clock: Clock, notify: Notify) {
    this.#clock = clock;
    this.#notify = notify;
  }

  /** The fault that has made the worker unhealthy; the longest standing when there are several. */
  get error(): LanekeeperError | undefined {
    for (const { error, timer } of this.#faults.values()) {
      if (timer === undefined) return error;
    }
    return undefined;
  }

  /** `cause` names the fault: another call for the same cause replaces its error and keeps its grace running. */
  fault(cause: string, error: LanekeeperError, graceMs = 0): void {
    if (this.#stopped) return;
    const known = this.#faults.get(cause);
    if (known !== undefined) {
      known.error = error;
      return;
    }
    const fault: { error: LanekeeperError; timer: Timer | undefined } = { error, timer: undefined };
    if (graceMs > 0) fault.timer = this.#clock.after(graceMs, () => this.#lasted(fault));
    const before = this.error;
    this.#faults.set(cause, fault);
    if (fault.timer === undefined && before === undefined) this.#notify({ type: "unhealthy", error });
  }

  clear(cause: string): void {
    const fault = this.#faults.get(cause);
    if (fault === undefined) return;
    const before = this.error;
    fault.timer?.stop();
    this.#faults.delete(cause);
    if (before !== undefined && this.error === undefined) this.#notify({ type: "healthy" });
  }

  /** Tells nothing any more and leaves no timer behind, whatever still fails; for a worker that has ended. */
  stop(): void {
    this.#stopped = true;
    for (const { timer } of this.#faults.values()) timer?.stop();
  }

  #lasted(fault: { error: LanekeeperError; timer: Timer | undefined }): void {
    const before = this.error;
    fault.timer = undefined;
    if (before === undefined) this.#notify({ type: "unhealthy", error: fault.error });
  }
}
