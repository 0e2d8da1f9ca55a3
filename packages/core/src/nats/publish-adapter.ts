import { headers, type Msg, type MsgHdrs, type NatsConnection, nuid } from "@nats-io/nats-core";
import { type BatchPlace, headerBlock } from "../domain/publish-headers.js";
import type { MappingProbe, PublishListener, PublishMessage, PublishPort } from "../runtime/publish-port.js";
import { translateApiError } from "./api-error.js";
import { newInbox } from "./inbox.js";

type ReplySubscription = ReturnType<NatsConnection["subscribe"]>;

/**
 * A publisher's own wildcard subscription for answers: the last token of a reply subject says which attempt it is
 * about. A request for each would cost a timer, a promise and an error object per event.
 */
export function publishAdapter(connection: NatsConnection): PublishPort {
  return new PublishAdapter(connection);
}

/**
 * Attempts are handed to the client in batches: it writes to its socket in the first microtask after a publish, so a
 * caller that awaits `ready()` before each publish would cost a system call per event.
 */
class PublishAdapter implements PublishPort {
  readonly idPrefix = nuid.next();
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  #subscription: ReplySubscription | undefined;
  #listener: PublishListener | undefined;
  /** What is to be sent, and its tokens; an array of messages is an atomic batch. */
  #waiting: (PublishMessage | readonly PublishMessage[])[] = [];
  #tokens: number[] = [];
  #scheduled: NodeJS.Immediate | undefined;
  /** The client reads both before `publish()` returns, so one of each serves for all. */
  readonly #headers = new EncodedHeaders();
  readonly #withReply: { reply: string; headers: MsgHdrs };
  readonly #withoutReply: { headers: MsgHdrs };

  constructor(connection: NatsConnection) {
    this.#connection = connection;
    this.#inbox = `${newInbox(connection)}.`;
    const headers = this.#headers as unknown as MsgHdrs;
    this.#withReply = { reply: "", headers };
    this.#withoutReply = { headers };
  }

  listen(listener: PublishListener): void {
    this.#listener = listener;
    const { length } = this.#inbox;
    try {
      this.#subscription = this.#connection.subscribe(`${this.#inbox}*`, {
        callback: (error, message) => {
          if (error !== null) listener.inboxDenied(error);
          else dispatch(listener, message, length);
        },
      });
    } catch (error) {
      throw translateApiError(error, "opening a publisher");
    }
  }

  send(message: PublishMessage, token: number): void {
    this.#enqueue(message, token);
  }

  sendBatch(messages: readonly PublishMessage[], token: number): void {
    this.#enqueue(messages, token);
  }

  probe(probes: readonly MappingProbe[], timeoutMs: number): Promise<(string | undefined)[] | undefined> {
    return probeMapping(this.#connection, probes, timeoutMs);
  }

  close(): void {
    clearImmediate(this.#scheduled);
    this.#waiting = [];
    this.#tokens = [];
    if (!this.#connection.isClosed()) this.#subscription?.unsubscribe();
  }

  #enqueue(what: PublishMessage | readonly PublishMessage[], token: number): void {
    this.#scheduled ??= setImmediate(this.#flush);
    this.#tokens.push(token);
    // A caller that never lets the event loop turn still gets its events out.
    if (this.#waiting.push(what) >= MAX_WAITING) this.#flush();
  }

  readonly #flush = (): void => {
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    const waiting = this.#waiting;
    const tokens = this.#tokens;
    this.#waiting = [];
    this.#tokens = [];
    for (let i = 0; i < waiting.length; i++) {
      const what = waiting[i] as PublishMessage | readonly PublishMessage[];
      const token = tokens[i] as number;
      try {
        if ("subject" in what) this.#publish(what, token, undefined);
        else this.#publishBatch(what, token);
      } catch (error) {
        const { subject } = "subject" in what ? what : (what[0] as PublishMessage);
        const reason = translateApiError(error, `publishing to "${subject}"`);
        // Never from within send(): whoever sends is in the middle of a decision.
        queueMicrotask(() => this.#listener?.notSent(token, reason));
      }
    }
  };

  /** Only the last message asks for an answer: it is about the batch as a whole. */
  #publishBatch(messages: readonly PublishMessage[], token: number): void {
    const id = `${this.idPrefix}.${token.toString(36)}`;
    const last = messages.length;
    let sequence = 0;
    for (const message of messages) {
      sequence++;
      this.#publish(message, token, { id, sequence, commit: sequence === last });
    }
  }

  #publish(message: PublishMessage, token: number, batch: BatchPlace | undefined): void {
    // A small Buffer comes from a pool; a TextEncoder allocates for each.
    this.#headers.bytes = Buffer.from(headerBlock(message.id, message.moreHeaders, batch));
    if (batch?.commit === false) {
      this.#connection.publish(message.subject, message.payload, this.#withoutReply);
      return;
    }
    this.#withReply.reply = this.#inbox + token.toString(36);
    this.#connection.publish(message.subject, message.payload, this.#withReply);
  }
}

const MAX_WAITING = 512;

function dispatch(listener: PublishListener, message: Msg, prefixLength: number): void {
  const token = Number.parseInt(message.subject.slice(prefixLength), 36);
  const { data } = message;
  if (data.length === 0) {
    if (message.headers?.code === 503) listener.noResponders(token);
    return;
  }
  listener.answered(token, data);
}

/**
 * Headers that are already bytes. The client calls nothing but `encode()` when it publishes, and its own class walks
 * and rebuilds the whole block at every call; a retry would pay for it again.
 */
class EncodedHeaders {
  bytes: Uint8Array = new Uint8Array(0);

  encode(): Uint8Array {
    return this.bytes;
  }
}

/** How many times as long as for the answers is waited for a round trip. */
const roundTripPatience = 10;

/**
 * Publishes probes that expect a stream of a name that no stream can have: JetStream refuses to store them, while a
 * core subscription sees the subject to which the server mapped them (measured on 2.10 and 2.15: nothing is stored).
 */
async function probeMapping(
  connection: NatsConnection,
  probes: readonly MappingProbe[],
  timeoutMs: number,
): Promise<(string | undefined)[] | undefined> {
  const seen = probes.map((): string | undefined => undefined);
  const inbox = newInbox(connection);
  const subscriptions: ReplySubscription[] = [];
  let missing = probes.length;
  let finish = (_certain: boolean) => {};
  const finished = new Promise<boolean>((resolve) => {
    finish = resolve;
  });
  // What was mapped comes before the answer to a ping that was sent after it.
  const roundTrip = () =>
    void connection.flush().then(
      () => finish(true),
      () => finish(false),
    );
  // Time alone proves nothing: process or server may have stood still.
  const timer = setTimeout(roundTrip, timeoutMs);
  const lastTimer = setTimeout(() => finish(false), timeoutMs * roundTripPatience);
  const note = (index: number, subject: string) => {
    if (seen[index] === undefined) missing--;
    seen[index] = subject;
    if (missing === 0) finish(true);
  };
  let certain = false;
  try {
    let unanswered = probes.length;
    subscriptions.push(
      connection.subscribe(inbox, {
        // The answers come without the mapped subject; once all are there, a round trip brings in what was mapped.
        callback: (error) => {
          unanswered--;
          if (error !== null || unanswered <= 0) roundTrip();
        },
      }),
    );
    for (const [index, { filter }] of probes.entries()) {
      subscriptions.push(
        connection.subscribe(filter, {
          callback: (error, message) => (error === null ? note(index, message.subject) : finish(true)),
        }),
      );
    }
    const header = headers();
    header.set("Nats-Expected-Stream", "lanekeeper mapping probe");
    for (const { intake } of probes)
      connection.publish(intake, new Uint8Array(0), { headers: header, reply: inbox });
    certain = await finished;
  } catch {
    // The connection is closed or draining.
  } finally {
    clearTimeout(timer);
    clearTimeout(lastTimer);
    if (!connection.isClosed()) for (const subscription of subscriptions) subscription.unsubscribe();
  }
  return certain ? seen : undefined;
}
