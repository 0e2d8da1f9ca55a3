/** What JetStream tells about a delivery in its reply subject. */
export interface AckSubject {
  readonly stream: string;
  readonly consumer: string;
  readonly deliveries: number;
  readonly seq: number;
  readonly deliverySeq: number;
  readonly stamp: string;
}

const prefix = "$JS.ACK.";

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<delivery seq>.<time>.<pending>` and its newer form,
 * which has `<domain>.<account>` before the stream and may have more at its end. Undefined for anything else.
 * Source: nats-server ADR-15.
 */
export function parseAckSubject(reply: string): AckSubject | undefined {
  if (!reply.startsWith(prefix)) return undefined;
  const dots: number[] = [];
  for (let at = reply.indexOf(".", prefix.length); at >= 0; at = reply.indexOf(".", at + 1)) dots.push(at);
  // Tokens behind the prefix: 7 in the older form, 9 or more in the newer one.
  if (dots.length !== 6 && dots.length < 8) return undefined;
  const first = dots.length === 6 ? 0 : 2;
  const token = (index: number): string =>
    reply.slice(index === 0 ? prefix.length : (dots[index - 1] ?? 0) + 1, dots[index] ?? reply.length);
  const deliveries = Number(token(first + 2));
  const seq = Number(token(first + 3));
  const deliverySeq = Number(token(first + 4));
  const stamp = token(first + 5);
  if (!(seq > 0) || !(deliveries > 0) || !(deliverySeq > 0)) return undefined;
  return { stream: token(first), consumer: token(first + 1), deliveries, seq, deliverySeq, stamp };
}

/** Reads the reply subjects of one consumer's deliveries. Called for every event: only what differs among them is read. */
export class ConsumerAcks {
  readonly #stream: string;
  readonly #consumer: string;
  readonly #prefix: string;

  constructor(stream: string, consumer: string) {
    this.#stream = stream;
    this.#consumer = consumer;
    this.#prefix = `${prefix}${stream}.${consumer}.`;
  }

  /** As `parseAckSubject`; undefined for another consumer's, too. */
  read(reply: string): AckSubject | undefined {
    return reply.startsWith(this.#prefix)
      ? (this.#readOlder(reply) ?? this.#readAny(reply))
      : this.#readAny(reply);
  }

  /** The form without domain and account: behind the prefix are four numbers and one more token. */
  #readOlder(reply: string): AckSubject | undefined {
    const deliveriesEnd = reply.indexOf(".", this.#prefix.length);
    const seqEnd = reply.indexOf(".", deliveriesEnd + 1);
    const deliverySeqEnd = reply.indexOf(".", seqEnd + 1);
    const stampEnd = reply.indexOf(".", deliverySeqEnd + 1);
    if (deliveriesEnd < 0 || seqEnd < 0 || deliverySeqEnd < 0 || stampEnd < 0) return undefined;
    if (reply.indexOf(".", stampEnd + 1) >= 0) return undefined;
    const deliveries = digits(reply, this.#prefix.length, deliveriesEnd);
    const seq = digits(reply, deliveriesEnd + 1, seqEnd);
    const deliverySeq = digits(reply, seqEnd + 1, deliverySeqEnd);
    if (!(seq > 0) || !(deliveries > 0) || !(deliverySeq > 0)) return undefined;
    const stamp = reply.slice(deliverySeqEnd + 1, stampEnd);
    return { stream: this.#stream, consumer: this.#consumer, deliveries, seq, deliverySeq, stamp };
  }

  #readAny(reply: string): AckSubject | undefined {
    const described = parseAckSubject(reply);
    return described?.consumer === this.#consumer ? described : undefined;
  }
}

/** A whole number in decimal digits; NaN for anything else, 0 for nothing. */
function digits(text: string, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return Number.NaN;
    number = number * 10 + digit;
  }
  return number;
}
