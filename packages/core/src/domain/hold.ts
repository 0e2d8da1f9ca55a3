/** How long a delivered event may be taken to be ours, given the consumer's ackWait. */
export interface HoldRules {
  /** The consumer's ack_wait. */
  readonly ackWaitMs: number;
  /** An in-progress is sent when the last one is this old. */
  readonly workingMs: number;
  /** The hold counts as lapsed this long before the server would redeliver. */
  readonly marginMs: number;
}

/**
 * A quarter of ackWait between in-progress signals leaves three chances before it runs out. The margin covers the
 * second by which a server may be early after a restart (it keeps pending times in whole seconds), as far as a
 * short ackWait has room for it.
 */
export function holdRules(ackWaitMs: number): HoldRules {
  return { ackWaitMs, workingMs: ackWaitMs / 4, marginMs: Math.min(1_500, ackWaitMs * 0.3) };
}

/**
 * The stopwatch of one delivered event. It counts from a moment at which the server is known to have been heard
 * *after*: the send time of the newest confirmed in-progress, or of the newest ping answered before the delivery.
 * Both monotonic and wall time are kept: a machine that was suspended shows in one of them only (O6).
 */
export class Hold {
  readonly #rules: HoldRules;
  #provenAt: number;
  #provenWall: number;
  #sentAt: number;

  constructor(rules: HoldRules, provenAt: number, provenWall: number) {
    this.#rules = rules;
    this.#provenAt = provenAt;
    this.#provenWall = provenWall;
    this.#sentAt = provenAt;
  }

  /** Whether nothing may be done under this hold any more (O6). */
  lapsed(now: number, wall: number): boolean {
    const limit = this.#rules.ackWaitMs - this.#rules.marginMs;
    return now - this.#provenAt >= limit || wall - this.#provenWall >= limit;
  }

  /** Whether it is time for another in-progress. */
  wantsWorking(now: number): boolean {
    return now - this.#sentAt >= this.#rules.workingMs;
  }

  workingSent(now: number): void {
    this.#sentAt = now;
  }

  /** An in-progress sent at `sentAt` was confirmed by the server. */
  confirmed(sentAt: number, sentWall: number): void {
    if (sentAt <= this.#provenAt) return;
    this.#provenAt = sentAt;
    this.#provenWall = sentWall;
  }
}
