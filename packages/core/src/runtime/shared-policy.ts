import { CompletedMemory } from "../domain/completed-memory.js";
import type { Fence } from "../domain/event.js";
import { sharedFenceToken } from "../domain/fence-token.js";
import { Hold, type HoldRules } from "../domain/hold.js";
import type { LanePolicy } from "./lane-policy.js";

/** A moment, on both clocks, of which it is known that the server was heard after it. */
export interface Proof {
  readonly at: number;
  readonly wall: number;
}

/** A shared lane: the server arbitrates by MaxAckPending = 1, and a stopwatch says how long an event is ours. */
export class SharedPolicy implements LanePolicy {
  readonly memory = new CompletedMemory();
  readonly lapses = "event";
  readonly tellsReleases = true;
  readonly #proof: () => Proof;
  #rules: HoldRules;

  /** `proof`: the send time of the newest answered ping. */
  constructor(rules: HoldRules, proof: () => Proof) {
    this.#rules = rules;
    this.#proof = proof;
  }

  set rules(rules: HoldRules) {
    this.#rules = rules;
  }

  newHold(): Hold {
    const { at, wall } = this.#proof();
    return new Hold(this.#rules, at, wall);
  }

  lapseText(seq: number): string {
    return `the hold of event ${seq} was not confirmed in time; the server may have given it to another worker`;
  }

  fence({ seq, deliveries }: { seq: number; deliveries: number }, incarnation: string): Fence {
    return Object.freeze({ token: sharedFenceToken(seq, deliveries), incarnation });
  }

  accepts(): boolean {
    // Other workers take deliveries of this lane too: gaps say nothing, and MaxAckPending = 1 keeps the order.
    return true;
  }

  letGo(): void {
    // The server holds the lane's next event back until this one has come again.
  }

  isPoison(): boolean {
    return false;
  }

  beforeStart(_seq: number, begin: () => void): void {
    begin();
  }

  afterEnd(): void {
    // Nothing waits for it.
  }
}
