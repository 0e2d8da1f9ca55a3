import type { Msg, NatsConnection, Subscription } from "@nats-io/nats-core";
import { defaultPullRules, type PullAnswer, PullState } from "../domain/pull-state.js";
import type { Clock, Timer } from "../runtime/clock.js";
import type { ConnectionPort } from "../runtime/connection-port.js";
import type { Delivery, LaneFeed, LaneFeedObserver, OpenLaneFeed } from "../runtime/lane-feed-port.js";
import { parseAckSubject } from "./ack-subject.js";
import { translateApiError } from "./api-error.js";
import { ConfirmedSends } from "./confirmed-sends.js";
import { headerRecord } from "./header-record.js";
import { newInbox } from "./inbox.js";
import type { JetStreamApi } from "./jetstream-api.js";
import { msToNanos } from "./nanos.js";

const encoder = new TextEncoder();
const ack = encoder.encode("+ACK");
const inProgress = encoder.encode("+WPI");
const nak = encoder.encode("-NAK");
const tickMs = 250;

interface FedLane {
  readonly index: number;
  readonly consumer: string;
  readonly pullSubject: string;
  readonly state: PullState;
}

/**
 * Pulls any number of lane consumers over one subscription: deliveries carry their consumer in the reply subject, status
 * messages carry lane and pull number in their own. That keeps a lane's cost at a map entry, whatever their number.
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

class LaneFeedAdapter implements LaneFeed {
  readonly #connection: NatsConnection;
  readonly #port: ConnectionPort;
  readonly #api: JetStreamApi;
  readonly #stream: string;
  readonly #clock: Clock;
  readonly #observer: LaneFeedObserver;
  readonly #byConsumer = new Map<string, FedLane>();
  readonly #byIndex = new Map<number, FedLane>();
  readonly #confirms: ConfirmedSends;
  readonly #pullRequest: Uint8Array;
  readonly #stopObserving: () => void;
  #inbox = "";
  #subscription: Subscription | undefined;
  #lastIndex = 0;
  #timer: Timer | undefined;
  #draining = false;

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
    this.#confirms = new ConfirmedSends(connection, clock, api.timeoutMs);
    const { batch, expiresMs, heartbeatMs } = defaultPullRules;
    this.#pullRequest = encoder.encode(
      JSON.stringify({ batch, expires: msToNanos(expiresMs), idle_heartbeat: msToNanos(heartbeatMs) }),
    );
    this.#subscribe();
    this.#stopObserving = port.observe((change) => {
      if (change.type === "reconnected") this.#startOver();
      // Whatever else the owner of the connection may not publish is no business of ours.
      else if (change.type === "publish-denied" && this.#publishes(change.subject))
        this.#denied(change.error);
    });
    this.#timer = clock.after(tickMs, () => this.#tick());
  }

  add(consumer: string): void {
    if (this.#draining || this.#byConsumer.has(consumer)) return;
    const lane: FedLane = {
      index: ++this.#lastIndex,
      consumer,
      pullSubject: `${this.#api.prefix}.CONSUMER.MSG.NEXT.${this.#stream}.${consumer}`,
      state: new PullState(defaultPullRules),
    };
    this.#byConsumer.set(consumer, lane);
    this.#byIndex.set(lane.index, lane);
    this.#answer(lane, lane.state.start(this.#clock.now()));
  }

  remove(consumer: string): void {
    const lane = this.#byConsumer.get(consumer);
    if (lane === undefined) return;
    this.#byConsumer.delete(consumer);
    this.#byIndex.delete(lane.index);
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

  async drain(timeoutMs: number): Promise<void> {
    this.#draining = true;
    this.#timer?.stop();
    const subscription = this.#subscription;
    if (subscription === undefined || subscription.isClosed() || !this.#port.isConnected()) return;
    // The server is told first and asked for a round trip: what it had sent before still comes through the callback.
    let timer: Timer | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = this.#clock.after(timeoutMs, resolve);
    });
    await Promise.race([subscription.drain().catch(() => {}), deadline]);
    timer?.stop();
  }

  close(): void {
    this.#draining = true;
    this.#timer?.stop();
    this.#stopObserving();
    this.#byConsumer.clear();
    this.#byIndex.clear();
    this.#unsubscribe();
    this.#confirms.close();
  }

  /** A new inbox for every connection: what pulls of the old one still bring is nobody's, and is delivered again. */
  #startOver(): void {
    if (this.#draining) return;
    this.#unsubscribe();
    this.#subscribe();
    const now = this.#clock.now();
    for (const lane of this.#byConsumer.values()) this.#answer(lane, lane.state.start(now));
  }

  #subscribe(): void {
    if (this.#connection.isClosed()) return;
    this.#inbox = newInbox(this.#connection);
    this.#subscription = this.#connection.subscribe(`${this.#inbox}.>`, {
      callback: (error, message) => {
        if (error === null || error === undefined) this.#receive(message);
        else this.#denied(error);
      },
    });
  }

  #unsubscribe(): void {
    if (this.#subscription !== undefined && !this.#subscription.isClosed()) this.#subscription.unsubscribe();
    this.#subscription = undefined;
  }

  #receive(message: Msg): void {
    const reply = message.reply === undefined ? undefined : parseAckSubject(message.reply);
    if (reply === undefined) return this.#receiveStatus(message);
    const lane = this.#byConsumer.get(reply.consumer);
    if (lane === undefined) return;
    this.#observer.delivered({
      ...reply,
      subject: message.subject,
      bytes: message.data,
      headers: headerRecord(message.headers),
      reply: message.reply as string,
    });
    this.#answer(lane, lane.state.delivered(this.#clock.now()));
  }

  #receiveStatus(message: Msg): void {
    if (!message.subject.startsWith(this.#inbox)) return;
    const [index, number] = message.subject.slice(this.#inbox.length + 1).split(".");
    const lane = this.#byIndex.get(Number(index));
    if (lane === undefined || message.headers === undefined) return;
    const { code, description } = message.headers;
    this.#answer(lane, lane.state.status(Number(number), code, description, this.#clock.now()));
  }

  #publishes(subject: string): boolean {
    const pulls = `${this.#api.prefix}.CONSUMER.MSG.NEXT.${this.#stream}.`;
    return subject.startsWith(pulls) || parseAckSubject(subject)?.stream === this.#stream;
  }

  #denied(error: Error): void {
    this.#observer.denied(translateApiError(error, `working on stream ${this.#stream}`));
  }

  #tick(): void {
    this.#timer = this.#clock.after(tickMs, () => this.#tick());
    this.#confirms.expire();
    if (!this.#port.isConnected()) return;
    const now = this.#clock.now();
    for (const lane of [...this.#byConsumer.values()]) this.#answer(lane, lane.state.tick(now));
  }

  #answer(lane: FedLane, answer: PullAnswer): void {
    if (answer.pull !== undefined && !this.#draining && this.#port.isConnected()) {
      this.#publish(lane.pullSubject, this.#pullRequest, {
        reply: `${this.#inbox}.${lane.index}.${answer.pull}`,
      });
    }
    if (answer.trouble !== undefined)
      this.#observer.trouble(lane.consumer, answer.trouble.kind, answer.trouble.text);
    if (answer.recovered) this.#observer.recovered(lane.consumer);
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
