/** How a member's lease is kept, from its length. All milliseconds. */
export interface LeaseRules {
  readonly leaseMs: number;
  /** Between beats. */
  readonly beatMs: number;
  /** After the send time of the newest confirmed beat, when the member stops acting. */
  readonly fenceMs: number;
}

/**
 * Beats come often enough that an election of a replicated bucket (4 to 9 s) fits into a lease of 12 s. The member stops
 * a fifth of the lease before anybody may call it dead, so that handlers have time to obey their signal.
 */
export function leaseRules(leaseMs: number): LeaseRules {
  return { leaseMs, beatMs: Math.min(leaseMs / 8, 1_000), fenceMs: leaseMs * 0.8 };
}

/**
 * A member's own view of its lease. It counts from the *send* time of the newest confirmed beat: whoever may call the
 * member dead has seen that beat later than it was sent. Monotonic and wall time both have to agree: a suspended machine
 * shows in one of them only (O6).
 */
export class Lease {
  readonly rules: LeaseRules;
  #sentAt = Number.NEGATIVE_INFINITY;
  #sentWall = Number.NEGATIVE_INFINITY;

  constructor(rules: LeaseRules) {
    this.rules = rules;
  }

  confirmed(sentAt: number, sentWall: number): void {
    if (sentAt <= this.#sentAt) return;
    this.#sentAt = sentAt;
    this.#sentWall = sentWall;
  }

  /** Nothing may be done under it until another beat is confirmed. */
  end(): void {
    this.#sentAt = Number.NEGATIVE_INFINITY;
    this.#sentWall = Number.NEGATIVE_INFINITY;
  }

  lapsed(now: number, wall: number): boolean {
    return now - this.#sentAt >= this.rules.fenceMs || wall - this.#sentWall >= this.rules.fenceMs;
  }
}
