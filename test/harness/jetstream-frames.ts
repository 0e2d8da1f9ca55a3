import type { NatsFrame } from "./nats-frame.js";

/** What a worker answers to a delivery. */
export type AckVerb = "+ACK" | "-NAK" | "+WPI" | "+TERM";

/** What a delivery's reply subject says about it. */
export interface DeliveryInfo {
  readonly stream: string;
  readonly consumer: string;
  /** How many times this message was delivered, this time included. */
  readonly deliveries: number;
  readonly streamSeq: number;
  readonly deliverySeq: number;
}

/** Server → client: the server's word that an event is stored. API answers carry a `type`, PubAcks do not. */
export function isPubAck(frame: NatsFrame): boolean {
  return pubAckOf(frame) !== undefined;
}

/** The sequence a PubAck tells, and whether the server knew the message id already. */
export function pubAckOf(frame: NatsFrame): { stream: string; seq: number; duplicate: boolean } | undefined {
  if ((frame.op !== "MSG" && frame.op !== "HMSG") || frame.payload[0] !== OPENING_BRACE) return undefined;
  if (!frame.payload.includes('"seq"') || !frame.payload.includes('"stream"')) return undefined;
  let body: unknown;
  try {
    body = JSON.parse(frame.payload.toString());
  } catch {
    return undefined;
  }
  const ack = body as { stream?: unknown; seq?: unknown; duplicate?: unknown; type?: unknown };
  if (typeof ack.stream !== "string" || typeof ack.seq !== "number" || ack.type !== undefined)
    return undefined;
  return { stream: ack.stream, seq: ack.seq, duplicate: ack.duplicate === true };
}

/** Client → server: an answer to a delivery; `+ACK`, `-NAK {"delay":…}`, `+WPI`, `+TERM reason`. */
export function ackVerbOf(frame: NatsFrame): AckVerb | undefined {
  if (deliveryOfReply(frame.subject) === undefined) return undefined;
  const verb = frame.payload.toString("latin1").split(" ")[0];
  if (verb === "" || verb === "+ACK") return "+ACK";
  return verb === "-NAK" || verb === "+WPI" || verb === "+TERM" ? verb : undefined;
}

/** Server → client: a JetStream delivery. */
export function deliveryOf(frame: NatsFrame): DeliveryInfo | undefined {
  return frame.op === "MSG" || frame.op === "HMSG" ? deliveryOfReply(frame.reply) : undefined;
}

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<delivery seq>.<time>.<pending>`, and the longer
 * form with domain and account hash before the stream and a token behind the rest.
 */
export function deliveryOfReply(subject: string): DeliveryInfo | undefined {
  if (!subject.startsWith("$JS.ACK.")) return undefined;
  const tokens = subject.split(".");
  const from = tokens.length === 9 ? 2 : 4;
  const [stream, consumer, deliveries, streamSeq, deliverySeq] = tokens.slice(from);
  if (stream === undefined || consumer === undefined || deliverySeq === undefined) return undefined;
  return {
    stream,
    consumer,
    deliveries: Number(deliveries),
    streamSeq: Number(streamSeq),
    deliverySeq: Number(deliverySeq),
  };
}

const OPENING_BRACE = "{".charCodeAt(0);
