import { headers, type Msg, type MsgHdrs, type NatsConnection, nuid } from "@nats-io/nats-core";
import type {
  MappingProbe,
  PublishHeaders,
  PublishListener,
  PublishMessage,
  PublishPort,
} from "../runtime/publish-port.js";
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
  #batch: { readonly message: PublishMessage; readonly token: number }[] = [];
  #scheduled: NodeJS.Immediate | undefined;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
    this.#inbox = `${newInbox(connection)}.`;
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

  encodeHeaders(headers: PublishHeaders): Uint8Array {
    return headerBlock(headers);
  }

  send(message: PublishMessage, token: number): void {
    this.#scheduled ??= setImmediate(this.#flush);
    // A caller that never lets the event loop turn still gets its events out.
    if (this.#batch.push({ message, token }) >= MAX_BATCH) this.#flush();
  }

  probe(probes: readonly MappingProbe[], timeoutMs: number): Promise<(string | undefined)[]> {
    return probeMapping(this.#connection, probes, timeoutMs);
  }

  close(): void {
    clearImmediate(this.#scheduled);
    this.#batch = [];
    if (!this.#connection.isClosed()) this.#subscription?.unsubscribe();
  }

  readonly #flush = (): void => {
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    const batch = this.#batch;
    this.#batch = [];
    for (const { message, token } of batch) this.#publish(message, token);
  };

  #publish(message: PublishMessage, token: number): void {
    try {
      this.#connection.publish(message.subject, message.payload, {
        reply: this.#inbox + token.toString(36),
        headers: new EncodedHeaders(message.headers) as unknown as MsgHdrs,
      });
    } catch (error) {
      const reason = translateApiError(error, `publishing to "${message.subject}"`);
      // Never from within send(): whoever sends is in the middle of a decision.
      queueMicrotask(() => this.#listener?.notSent(token, reason));
    }
  }
}

const MAX_BATCH = 512;

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
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  encode(): Uint8Array {
    return this.#bytes;
  }
}

/** The caller has checked every part: no line break can be in any of them. */
function headerBlock({ id, expect, lines }: PublishHeaders): Uint8Array {
  let text = `NATS/1.0\r\nNats-Msg-Id: ${id}\r\n`;
  if (expect !== undefined) {
    text += `Nats-Expected-Last-Subject-Sequence: ${expect.lastSeq}\r\nNats-Expected-Last-Subject-Sequence-Subject: ${expect.filter}\r\n`;
  }
  if (lines !== undefined) for (const [name, value] of lines) text += `${name}: ${value}\r\n`;
  // A small Buffer comes from a pool; a TextEncoder allocates for each.
  return Buffer.from(`${text}\r\n`);
}

/**
 * Publishes probes that expect a stream of a name that no stream can have: JetStream refuses to store them, while a
 * core subscription sees the subject to which the server mapped them (measured on 2.10 and 2.15: nothing is stored).
 */
async function probeMapping(
  connection: NatsConnection,
  probes: readonly MappingProbe[],
  timeoutMs: number,
): Promise<(string | undefined)[]> {
  const seen = probes.map((): string | undefined => undefined);
  const inbox = newInbox(connection);
  const subscriptions: ReplySubscription[] = [];
  let missing = probes.length;
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const timer = setTimeout(finish, timeoutMs);
  const note = (index: number, subject: string) => {
    if (seen[index] === undefined) missing--;
    seen[index] = subject;
    if (missing === 0) finish();
  };
  try {
    let unanswered = probes.length;
    subscriptions.push(
      connection.subscribe(inbox, {
        // The answers come without the mapped subject; once all are there, a round trip brings in what was mapped.
        callback: (error) => {
          unanswered--;
          if (error !== null || unanswered <= 0) connection.flush().then(finish, finish);
        },
      }),
    );
    for (const [index, { filter }] of probes.entries()) {
      subscriptions.push(
        connection.subscribe(filter, {
          callback: (error, message) => (error === null ? note(index, message.subject) : finish()),
        }),
      );
    }
    const header = headers();
    header.set("Nats-Expected-Stream", "lanekeeper mapping probe");
    for (const { intake } of probes)
      connection.publish(intake, new Uint8Array(0), { headers: header, reply: inbox });
    await finished;
  } catch {
    // The connection is closed or draining: nothing was seen.
  } finally {
    clearTimeout(timer);
    if (!connection.isClosed()) for (const subscription of subscriptions) subscription.unsubscribe();
  }
  return seen;
}
