import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { defaultPullRules, type PullAnswer } from "../domain/pull-state.js";
import type { Clock, Timer } from "../runtime/clock.js";
import type { ConnectionPort } from "../runtime/connection-port.js";
import type { Delivery, LaneFeed, LaneFeedObserver, OpenLaneFeed } from "../runtime/lane-feed-port.js";
import { parseAckSubject } from "./ack-subject.js";
import { translateApiError } from "./api-error.js";
import { ConfirmedSends } from "./confirmed-sends.js";
import { FedLane, type FedLaneObserver } from "./fed-lane.js";
import { inboxes } from "./inbox.js";
import type { JetStreamApi } from "./jetstream-api.js";
import { MessageDelivery } from "./message-delivery.js";
import { msToNanos } from "./nanos.js";

const encoder = new TextEncoder();
const ack = encoder.encode("+ACK");
const inProgress = encoder.encode("+WPI");
const nak = encoder.encode("-NAK");
const tickMs = 250;

/**
 * Pulls any number of lane consumers, each over a subscription of its own, so that one lane can be given back while the
 * others go on. Timers and confirmations are shared: a lane costs a map entry and a subscription.
 */
export function laneFeedAdapter(
  connection: NatsConnection,
  port: ConnectionPort,
  api: JetStreamApi,
  stream: string,
  clock: Clock,
): OpenLaneFeed {
  return (observer) => new LaneFeedAdapter(connection, port, api, stream, clock, observer);
}

class LaneFeedAdapter implements LaneFeed, FedLaneObserver {
  readonly #connection: NatsConnection;
  readonly #port: ConnectionPort;
  readonly #api: JetStreamApi;
  readonly #stream: string;
  readonly #clock: Clock;
  readonly #observer: LaneFeedObserver;
  readonly #lanes = new Map<string, FedLane>();
  readonly #confirms: ConfirmedSends;
  readonly #newInbox: () => string;
  readonly #pullRequest: Uint8Array;
  readonly #stopObserving: () => void;
  #timer: Timer | undefined;
  #closed = false;

  constructor(
    connection: NatsConnection,
    port: ConnectionPort,
    api: JetStreamApi,
    stream: string,
    clock: Clock,
    observer: LaneFeedObserver,
  ) {
    this.#connection = connection;
    this.#port = port;
    this.#api = api;
    this.#stream = stream;
    this.#clock = clock;
    this.#observer = observer;
    this.#newInbox = inboxes(connection);
    this.#confirms = new ConfirmedSends(connection, clock, api.timeoutMs);
    const { batch, expiresMs, heartbeatMs } = defaultPullRules;
    this.#pullRequest = encoder.encode(
      JSON.stringify({ batch, expires: msToNanos(expiresMs), idle_heartbeat: msToNanos(heartbeatMs) }),
    );
    this.#stopObserving = port.observe((change) => {
      if (change.type === "reconnected") this.#startOver();
      // Whatever else the owner of the connection may not publish is no business of ours.
      else if (change.type === "publish-denied" && this.#publishes(change.subject)) this.denied(change.error);
    });
    this.#timer = clock.after(tickMs, () => this.#tick());
  }

  add(consumer: string): void {
    if (this.#closed || this.#lanes.has(consumer)) return;
    const pullSubject = `${this.#api.prefix}.CONSUMER.MSG.NEXT.${this.#stream}.${consumer}`;
    const lane = new FedLane(this.#stream, consumer, pullSubject, this.#connection, this, this.#newInbox);
    this.#lanes.set(consumer, lane);
    lane.start(this.#clock.now());
  }

  remove(consumer: string): void {
    this.#lanes.get(consumer)?.unsubscribe();
    this.#lanes.delete(consumer);
  }

  ack(delivery: Delivery): boolean {
    return this.#send(delivery, ack);
  }

  ackConfirmed(delivery: Delivery): Promise<boolean> {
    return new Promise((resolve) => {
      if (!this.#port.isConnected()) return resolve(false);
      this.#confirms.send(delivery.reply, ack, resolve);
    });
  }

  drop(delivery: Delivery, reason: string): boolean {
    return this.#send(delivery, encoder.encode(`+TERM ${reason.replace(/[\r\n]+/g, " ").slice(0, 200)}`));
  }

  release(delivery: Delivery, delayMs: number): boolean {
    const body = delayMs > 0 ? encoder.encode(`-NAK ${JSON.stringify({ delay: msToNanos(delayMs) })}`) : nak;
    return this.#send(delivery, body);
  }

  working(delivery: Delivery, confirmed: () => void): boolean {
    if (!this.#port.isConnected()) return false;
    this.#confirms.send(delivery.reply, inProgress, (yes) => {
      if (yes) confirmed();
    });
    return true;
  }

  async drain(consumers: readonly string[], timeoutMs: number): Promise<void> {
    if (!this.#port.isConnected()) return;
    const lanes = consumers.flatMap((consumer) => this.#lanes.get(consumer) ?? []);
    let timer: Timer | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = this.#clock.after(timeoutMs, resolve);
    });
    await Promise.race([Promise.all(lanes.map((lane) => lane.drain())), deadline]);
    timer?.stop();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.stop();
    this.#stopObserving();
    for (const lane of this.#lanes.values()) lane.unsubscribe();
    this.#lanes.clear();
    this.#confirms.close();
  }

  message(lane: FedLane, message: Msg, reply: string): void {
    const described = lane.acks.read(reply);
    if (described === undefined) return;
    this.#observer.delivered(new MessageDelivery(message, reply, described));
    lane.delivered(this.#clock.now());
  }

  answer(lane: FedLane, answer: PullAnswer): void {
    if (answer.pull !== undefined && !lane.draining && this.#port.isConnected()) {
      this.#publish(lane.pullSubject, this.#pullRequest, { reply: lane.replyOf(answer.pull) });
    }
    if (answer.trouble !== undefined) {
      this.#observer.trouble(lane.consumer, answer.trouble.kind, answer.trouble.text);
    }
    if (answer.recovered) this.#observer.recovered(lane.consumer);
  }

  now(): number {
    return this.#clock.now();
  }

  denied(error: Error): void {
    this.#observer.denied(translateApiError(error, `working on stream ${this.#stream}`));
  }

  #startOver(): void {
    const now = this.#clock.now();
    for (const lane of [...this.#lanes.values()]) lane.start(now);
  }

  #publishes(subject: string): boolean {
    const pulls = `${this.#api.prefix}.CONSUMER.MSG.NEXT.${this.#stream}.`;
    return subject.startsWith(pulls) || parseAckSubject(subject)?.stream === this.#stream;
  }

  #tick(): void {
    this.#timer = this.#clock.after(tickMs, () => this.#tick());
    this.#confirms.expire();
    if (!this.#port.isConnected()) return;
    const now = this.#clock.now();
    for (const lane of [...this.#lanes.values()]) lane.tick(now);
  }

  #send(delivery: Delivery, payload: Uint8Array): boolean {
    if (!this.#port.isConnected()) return false;
    return this.#publish(delivery.reply, payload);
  }

  /** False when the connection takes nothing any more: its owner drains it, and this is called where nobody could catch. */
  #publish(subject: string, payload: Uint8Array, options?: { reply: string }): boolean {
    try {
      this.#connection.publish(subject, payload, options);
      return true;
    } catch {
      return false;
    }
  }
}
