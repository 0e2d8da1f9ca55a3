import { DeliveryRun } from "../domain/delivery-run.js";
import type { Fence } from "../domain/event.js";
import { LaneProgress } from "../domain/lane-progress.js";
import type { Lease } from "../domain/lease.js";
import type { Clock } from "./clock.js";
import type { Isolation } from "./isolation.js";
import type { Delivery } from "./lane-feed-port.js";
import type { EventHold, LanePolicy } from "./lane-policy.js";

/** An owned lane: everything is ours as long as the lease holds, and deliveries have to form an unbroken run. */
export class OwnedPolicy implements LanePolicy {
  readonly memory = new LaneProgress();
  readonly lapses = "lane";
  readonly tellsReleases = false;
  readonly #lease: () => Lease;
  readonly #clock: Clock;
  readonly #isolation: Isolation;
  readonly #broken: () => void;
  /** Undefined: the run is broken, or has not begun; nothing is accepted. */
  #run: DeliveryRun | undefined;
  #consumer = "";
  #epoch = 0;
  #fence: Fence = { token: 0, incarnation: "" };
  #workingMs = 0;
  #poison: ReadonlySet<number> = new Set();

  /** `broken` is called once when a delivery breaks the run. */
  constructor(lease: () => Lease, clock: Clock, isolation: Isolation, broken: () => void) {
    this.#lease = lease;
    this.#clock = clock;
    this.#isolation = isolation;
    this.#broken = broken;
  }

  /** Deliveries made so far in this run; 0 when there is none. */
  get deliveries(): number {
    return this.#run?.last ?? 0;
  }

  /** A new run begins, after the `deliveries`-th delivery of this consumer. */
  begin(of: {
    consumer: string;
    epoch: number;
    deliveries: number;
    ackWaitMs: number;
    poison: readonly number[];
  }): void {
    this.#consumer = of.consumer;
    this.#epoch = of.epoch;
    this.#run = new DeliveryRun(of.deliveries);
    this.#workingMs = of.ackWaitMs / 4;
    this.#poison = new Set(of.poison);
  }

  /** Whatever is delivered from here on is not looked at. */
  end(): void {
    this.#run = undefined;
  }

  newHold(): EventHold {
    return new OwnedHold(this.#lease, this.#clock.now(), this.#workingMs);
  }

  lapseText(seq: number): string {
    return `the lane's claim was lost, or could not be kept alive, while event ${seq} was handled; another worker may have it`;
  }

  /** The same for all events of a claim. */
  fence(_delivery: Delivery, incarnation: string): Fence {
    if (this.#fence.token !== this.#epoch || this.#fence.incarnation !== incarnation) {
      this.#fence = Object.freeze({ token: this.#epoch, incarnation });
    }
    return this.#fence;
  }

  accepts({ consumer, deliverySeq }: Delivery): boolean {
    if (this.#run === undefined || consumer !== this.#consumer) return false;
    if (this.#run.accepts(deliverySeq)) return true;
    this.letGo();
    return false;
  }

  letGo(): void {
    if (this.#run === undefined) return;
    this.#run = undefined;
    this.#broken();
  }

  isPoison(seq: number): boolean {
    return this.#poison.has(seq);
  }

  beforeStart(seq: number, begin: () => void): void {
    this.#isolation.beforeStart(seq, begin);
  }

  afterEnd(seq: number, ran: boolean): void {
    this.#isolation.afterEnd(seq, ran);
  }
}

/** Ours while the member's lease is; in-progress only keeps the server from delivering again to us. */
class OwnedHold implements EventHold {
  readonly #lease: () => Lease;
  readonly #workingMs: number;
  #sentAt: number;

  constructor(lease: () => Lease, now: number, workingMs: number) {
    this.#lease = lease;
    this.#workingMs = workingMs;
    this.#sentAt = now;
  }

  lapsed(now: number, wall: number): boolean {
    return this.#lease().lapsed(now, wall);
  }

  wantsWorking(now: number): boolean {
    return now - this.#sentAt >= this.#workingMs;
  }

  workingSent(now: number): void {
    this.#sentAt = now;
  }

  confirmed(): void {
    // The lease is what counts.
  }
}
