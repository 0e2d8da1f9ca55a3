import type { NatsConnection, Subscription } from "@nats-io/nats-core";
import type { Clock } from "../runtime/clock.js";
import { newInbox } from "./inbox.js";

interface Waiting {
  readonly sentAt: number;
  readonly answer: (confirmed: boolean) => void;
}

/** Messages whose receipt the server confirms with an empty reply, over one subscription and without a timer each. */
export class ConfirmedSends {
  readonly #connection: NatsConnection;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  /** In the order of sending, so that the oldest come first. */
  readonly #waiting = new Map<string, Waiting>();
  #last = 0;

  constructor(connection: NatsConnection, clock: Clock, timeoutMs: number) {
    this.#connection = connection;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#inbox = newInbox(connection);
    this.#subscription = connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null || error === undefined) {
          this.#settle(message.subject.slice(this.#inbox.length + 1), message.headers?.code !== 503);
        }
      },
    });
  }

  /** `answer` is called once: false when nobody is there to receive, or `expire` found the timeout over. */
  send(subject: string, payload: Uint8Array, answer: (confirmed: boolean) => void): void {
    const token = String(++this.#last);
    this.#waiting.set(token, { sentAt: this.#clock.now(), answer });
    try {
      this.#connection.publish(subject, payload, { reply: `${this.#inbox}.${token}` });
    } catch {
      // The connection takes nothing any more: its owner is draining it.
      this.#settle(token, false);
    }
  }

  /** Call it from time to time. */
  expire(): void {
    const limit = this.#clock.now() - this.#timeoutMs;
    for (const [token, { sentAt }] of this.#waiting) {
      if (sentAt > limit) return;
      this.#settle(token, false);
    }
  }

  close(): void {
    if (!this.#subscription.isClosed()) this.#subscription.unsubscribe();
    for (const token of [...this.#waiting.keys()]) this.#settle(token, false);
  }

  #settle(token: string, confirmed: boolean): void {
    const waiting = this.#waiting.get(token);
    this.#waiting.delete(token);
    waiting?.answer(confirmed);
  }
}
