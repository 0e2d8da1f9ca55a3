/** What JetStream tells about a delivery in its reply subject. */
export interface AckSubject {
  readonly stream: string;
  readonly consumer: string;
  readonly deliveries: number;
  readonly seq: number;
  readonly deliverySeq: number;
  readonly stamp: string;
}

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<delivery seq>.<time>.<pending>` and its newer form,
 * which has `<domain>.<account>` before the stream. Undefined for anything else. Source: nats-server ADR-15.
 */
export function parseAckSubject(reply: string): AckSubject | undefined {
  if (!reply.startsWith("$JS.ACK.")) return undefined;
  const tokens = reply.split(".");
  const shift = tokens.length === 9 ? 0 : 2;
  if (tokens.length !== 9 && tokens.length < 11) return undefined;
  const stream = tokens[2 + shift];
  const consumer = tokens[3 + shift];
  const deliveries = Number(tokens[4 + shift]);
  const seq = Number(tokens[5 + shift]);
  const deliverySeq = Number(tokens[6 + shift]);
  const stamp = tokens[7 + shift];
  if (
    stream === undefined ||
    consumer === undefined ||
    stamp === undefined ||
    !(seq > 0) ||
    !(deliveries > 0) ||
    !(deliverySeq > 0)
  )
    return undefined;
  return { stream, consumer, deliveries, seq, deliverySeq, stamp };
}
