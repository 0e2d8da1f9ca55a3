/** Times in milliseconds. */
export interface PullRules {
  /** Events one pull request may bring. */
  readonly batch: number;
  readonly expiresMs: number;
  readonly heartbeatMs: number;
}

export const defaultPullRules: PullRules = { batch: 500, expiresMs: 30_000, heartbeatMs: 2_000 };

/** What a lane's pull request met that somebody should look into. */
export type PullTrouble =
  | "consumer-deleted"
  | "stream-deleted"
  /** Nobody answered the request: no leader, or no consumer. */
  | "no-responders"
  /** The consumer has another leader: deliveries under way may be lost. It is pulled again by itself. */
  | "leader-changed"
  /** Nothing was heard for two and a half heartbeats. */
  | "silent"
  /** The consumer takes no more pull requests, or refuses this one. */
  | "refused";

/** `pull`: send a pull request with this number now. */
export interface PullAnswer {
  readonly pull?: number;
  readonly trouble?: { readonly kind: PullTrouble; readonly text: string };
  /** The first sign of life after trouble. */
  readonly recovered?: true;
}

const nothing: PullAnswer = {};

/**
 * One lane's pull requests: at most one is open at a time, and it is renewed when it is used up, expires or falls silent.
 * Pure; `now` is monotonic milliseconds.
 */
export class PullState {
  readonly #rules: PullRules;
  #number = 0;
  #open = false;
  #remaining = 0;
  #heardAt = 0;
  #openedAt = 0;
  #retryAt = Number.POSITIVE_INFINITY;
  #failures = 0;
  #troubled = false;

  constructor(rules: PullRules) {
    this.#rules = rules;
  }

  /** Starts, or starts over after a reconnect: whatever was open is forgotten. */
  start(now: number): PullAnswer {
    return { pull: this.#renew(now) };
  }

  /** An event arrived, whichever pull brought it. */
  delivered(now: number): PullAnswer {
    this.#heardAt = now;
    this.#failures = 0;
    if (!this.#open || --this.#remaining > 0) return this.#recovered(nothing);
    return this.#recovered({ pull: this.#renew(now) });
  }

  /** A status message arrived for pull `number`. */
  status(number: number, code: number, description: string, now: number): PullAnswer {
    if (number !== this.#number || !this.#open) return nothing;
    this.#heardAt = now;
    if (code === 100) {
      this.#failures = 0;
      return this.#recovered(nothing);
    }
    if (code === 404 || code === 408) {
      // A pull that ended far too early would make this a hot loop: then it waits like any failure.
      const ranItsTime = now - this.#openedAt >= 250;
      return ranItsTime ? this.#recovered({ pull: this.#renew(now) }) : this.#backOff(now);
    }
    if (code === 409 && /leadership change|server shutdown/i.test(description)) {
      return this.#backOff(now, "leader-changed", description);
    }
    if (code === 409 && /consumer deleted/i.test(description))
      return this.#backOff(now, "consumer-deleted", description);
    if (code === 409 && /stream deleted/i.test(description))
      return this.#backOff(now, "stream-deleted", description);
    if (code === 503) return this.#backOff(now, "no-responders", description);
    return this.#backOff(now, "refused", `${code} ${description}`);
  }

  /** Time went on. Call it a few times a second. */
  tick(now: number): PullAnswer {
    if (!this.#open) return now >= this.#retryAt ? { pull: this.#renew(now) } : nothing;
    if (now - this.#heardAt <= this.#rules.heartbeatMs * 2.5) return nothing;
    const text = `nothing heard for ${Math.round(now - this.#heardAt)} ms`;
    this.#troubled = true;
    return { pull: this.#renew(now), trouble: { kind: "silent", text } };
  }

  #renew(now: number): number {
    this.#open = true;
    this.#remaining = this.#rules.batch;
    this.#heardAt = now;
    this.#openedAt = now;
    this.#retryAt = Number.POSITIVE_INFINITY;
    return ++this.#number;
  }

  #backOff(now: number, kind?: PullTrouble, text = ""): PullAnswer {
    this.#open = false;
    this.#retryAt = now + Math.min(100 * 2 ** this.#failures, 2_000);
    this.#failures = Math.min(this.#failures + 1, 5);
    if (kind === undefined) return nothing;
    this.#troubled = true;
    return { trouble: { kind, text } };
  }

  #recovered(answer: PullAnswer): PullAnswer {
    if (!this.#troubled) return answer;
    this.#troubled = false;
    return { ...answer, recovered: true };
  }
}
