import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Clock, Timer } from "./clock.js";

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: LanekeeperError) => void;
}

/** Who waits for room in a publisher's buffer, and who for everything accepted so far to be settled. */
export class PublishWaiters {
  readonly #roomLeft: () => number;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #wakeAt: () => number;
  /** In order of their calls. */
  readonly #forRoom = new Map<Waiter, Timer>();
  readonly #forSettled = new Set<{ readonly upTo: number; left: number; readonly resolve: () => void }>();
  #accepted = 0;
  #settled = 0;
  #stopped: LanekeeperError | undefined;
  /** Callers that were let go and have not published yet. They need not: after a moment they are forgotten. */
  #promised = 0;
  #forgetting: Timer | undefined;

  /**
   * @param wakeAt who waits goes on once this much room is left: a few thousand at a time instead of one by one, each
   *   with a timer and a promise
   */
  constructor(roomLeft: () => number, clock: Clock, timeoutMs: number, wakeAt = () => 1) {
    this.#roomLeft = roomLeft;
    this.#wakeAt = wakeAt;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Events accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  onAccepted(): void {
    this.#accepted++;
    if (this.#promised > 0) this.#promised--;
  }

  /** The call of event number `number` (from 1, by acceptance) is settled. */
  onSettled(number: number): void {
    this.#settled++;
    if (this.#forSettled.size === 0) return;
    for (const waiter of this.#forSettled) {
      if (number > waiter.upTo || --waiter.left > 0) continue;
      this.#forSettled.delete(waiter);
      waiter.resolve();
    }
  }

  /** Everything accepted so far is settled. */
  settled(): Promise<void> {
    const left = this.#accepted - this.#settled;
    if (left <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#forSettled.add({ upTo: this.#accepted, left, resolve });
    });
  }

  /** There is room; rejects with BUFFER_FULL when there was none for the timeout. */
  room(): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    if (this.#forRoom.size === 0 && this.#roomLeft() > this.#promised) {
      this.#promise();
      return atOnce;
    }
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      this.#forRoom.set(
        waiter,
        this.#clock.after(this.#timeoutMs, () => this.#giveUp(waiter)),
      );
    });
  }

  /**
   * Something may have left the buffer: as many go on as there is room for, so that each finds it.
   *
   * @param least "any": also when it is less than what is waited for; from time to time, or a few events without an
   *   outcome would hold up everybody
   */
  onRoom(least: "enough" | "any" = "enough"): void {
    if (this.#forRoom.size === 0) return;
    let room = this.#roomLeft() - this.#promised;
    if (least === "enough" && room < this.#wakeAt()) return;
    for (const [waiter, timer] of this.#forRoom) {
      if (room-- <= 0) return;
      timer.stop();
      this.#forRoom.delete(waiter);
      this.#promise();
      waiter.resolve();
    }
  }

  stop(error: LanekeeperError): void {
    this.#stopped ??= error;
    this.#forgetting?.stop();
    for (const [waiter, timer] of this.#forRoom) {
      timer.stop();
      waiter.reject(error);
    }
    this.#forRoom.clear();
  }

  #promise(): void {
    this.#promised++;
    this.#forgetting ??= this.#clock.after(1, () => {
      this.#forgetting = undefined;
      this.#promised = 0;
      this.onRoom();
    });
  }

  #giveUp(waiter: Waiter): void {
    this.#forRoom.delete(waiter);
    if (this.#roomLeft() > 0) {
      waiter.resolve();
      return;
    }
    waiter.reject(
      new LanekeeperError(
        "BUFFER_FULL",
        `the publisher's buffer had no room for ${this.#timeoutMs} ms; the server does not answer, or more is published than it can store`,
      ),
    );
  }
}

const atOnce = Promise.resolve();
