import type { Msg, NatsConnection, Subscription } from "@nats-io/nats-core";
import { defaultPullRules, type PullAnswer, PullState } from "../domain/pull-state.js";
import { ConsumerAcks } from "./ack-subject.js";

export interface FedLaneObserver {
  /** A message with a reply subject, which is where its delivery is described. */
  message(lane: FedLane, message: Msg, reply: string): void;
  answer(lane: FedLane, answer: PullAnswer): void;
  denied(error: Error): void;
  /** Monotonic milliseconds. */
  now(): number;
}

/** One lane consumer's pulls over a subscription of its own, so that it can be drained while others go on. */
export class FedLane {
  readonly consumer: string;
  readonly acks: ConsumerAcks;
  readonly pullSubject: string;
  readonly #connection: NatsConnection;
  readonly #observer: FedLaneObserver;
  readonly #newInbox: () => string;
  readonly #state = new PullState(defaultPullRules);
  #inbox = "";
  #subscription: Subscription | undefined;
  #draining = false;

  constructor(
    stream: string,
    consumer: string,
    pullSubject: string,
    connection: NatsConnection,
    observer: FedLaneObserver,
    newInbox: () => string,
  ) {
    this.consumer = consumer;
    this.acks = new ConsumerAcks(stream, consumer);
    this.pullSubject = pullSubject;
    this.#connection = connection;
    this.#observer = observer;
    this.#newInbox = newInbox;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** The reply subject of pull `number`. */
  replyOf(number: number): string {
    return `${this.#inbox}.${number}`;
  }

  /** Under a new inbox: what pulls of an earlier one, or of a lost connection, still bring is nobody's. */
  start(now: number): void {
    if (this.#draining || this.#connection.isClosed()) return;
    this.unsubscribe();
    this.#inbox = this.#newInbox();
    this.#subscription = this.#connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null || error === undefined) this.#receive(message);
        else this.#observer.denied(error);
      },
    });
    this.#observer.answer(this, this.#state.start(now));
  }

  delivered(now: number): void {
    this.#observer.answer(this, this.#state.delivered(now));
  }

  tick(now: number): void {
    if (!this.#draining) this.#observer.answer(this, this.#state.tick(now));
  }

  /** The server is told first and asked for a round trip: what it had sent before still comes through the callback. */
  async drain(): Promise<void> {
    this.#draining = true;
    if (this.#subscription !== undefined && !this.#subscription.isClosed()) {
      await this.#subscription.drain().catch(() => {});
    }
  }

  unsubscribe(): void {
    if (this.#subscription !== undefined && !this.#subscription.isClosed()) this.#subscription.unsubscribe();
    this.#subscription = undefined;
  }

  #receive(message: Msg): void {
    if (message.reply !== undefined && message.reply !== "") {
      this.#observer.message(this, message, message.reply);
    } else if (message.headers !== undefined && message.subject.startsWith(this.#inbox)) {
      const number = Number(message.subject.slice(this.#inbox.length + 1));
      const { code, description } = message.headers;
      this.#observer.answer(this, this.#state.status(number, code, description, this.#observer.now()));
    }
  }
}
