import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Clock } from "./clock.js";
import type { ConnectionPort } from "./connection-port.js";
import type { Health } from "./health.js";
import type { Notify } from "./notifier.js";
import type { Proof } from "./shared-policy.js";

/** Milliseconds between pings, at most. */
const longestPingMs = 1_000;
const unresponsiveMs = 5_000;
const blockedMs = 1_000;

/**
 * Milliseconds between pings. A delivery's hold is short by at most this and a round trip, so a short ackWait needs
 * more of them: an event that finds no newer proof than its hold allows is let go as stale, and with pings about as far
 * apart as redeliveries that could go on for ever.
 */
export function pingInterval(ackWaitMs: number): number {
  return Math.min(longestPingMs, ackWaitMs / 8);
}

/**
 * Whether this process and its server still hear each other. Pings prove moments after which the server was heard;
 * ticks that come late show that the event loop was blocked or the process frozen.
 */
export class Liveness {
  readonly #connection: ConnectionPort;
  readonly #clock: Clock;
  readonly #health: Health;
  readonly #notify: Notify;
  readonly #tickMs: number;
  readonly #pingMs: number;
  #proof: Proof;
  #pingedAt: number | undefined;
  #tickedAt: number;
  #worstLagMs = 0;
  #generation = 0;

  /** `proof` is the send time of a ping that was answered just now. */
  constructor(
    connection: ConnectionPort,
    clock: Clock,
    health: Health,
    notify: Notify,
    tickMs: number,
    pingMs: number,
    proof: Proof,
  ) {
    this.#connection = connection;
    this.#clock = clock;
    this.#health = health;
    this.#notify = notify;
    this.#tickMs = tickMs;
    this.#pingMs = pingMs;
    this.#proof = proof;
    this.#tickedAt = clock.now();
  }

  get proof(): Proof {
    return this.#proof;
  }

  /** Milliseconds by which the event loop is, or lately was, late. */
  get lagMs(): number {
    const late = this.#clock.now() - this.#tickedAt - this.#tickMs;
    return Math.round(Math.max(late, this.#worstLagMs, 0));
  }

  tick(): void {
    const now = this.#clock.now();
    const late = now - this.#tickedAt - this.#tickMs;
    this.#tickedAt = now;
    // Fades within seconds, so that status() shows a block that has just ended.
    this.#worstLagMs = Math.max(late, this.#worstLagMs * 0.8);
    if (late >= blockedMs) {
      const text = `the event loop stood still for ${Math.round(late)} ms: a blocking handler, or the process was frozen`;
      this.#notify({ type: "loop-blocked", error: new LanekeeperError("LOOP_BLOCKED", text) });
    }
    if (!this.#connection.isConnected()) return;
    if (this.#pingedAt === undefined) {
      if (now - this.#proof.at >= this.#pingMs) this.#ping(now);
    } else if (now - this.#pingedAt >= unresponsiveMs && late < blockedMs) {
      const text = `the server has not answered a ping for ${Math.round(now - this.#pingedAt)} ms`;
      this.#health.fault("server", new LanekeeperError("SERVER_UNRESPONSIVE", text));
    }
  }

  /** A ping of an old connection is never answered. */
  reconnected(): void {
    this.#generation++;
    this.#pingedAt = undefined;
    this.#health.clear("server");
    this.#ping(this.#clock.now());
  }

  #ping(now: number): void {
    const generation = this.#generation;
    const wall = this.#clock.wall();
    this.#pingedAt = now;
    this.#connection.ping().then(
      () => {
        if (generation !== this.#generation) return;
        this.#proof = { at: now, wall };
        this.#pingedAt = undefined;
        this.#health.clear("server");
      },
      () => {
        // The connection went away; its own events say so.
      },
    );
  }
}
