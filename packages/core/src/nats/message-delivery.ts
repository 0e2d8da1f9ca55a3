import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import type { Delivery } from "../runtime/lane-feed-port.js";
import type { AckSubject } from "./ack-subject.js";
import { copyHeaders, type HeaderRecord, parseHeaders } from "./header-record.js";

/**
 * A delivery without the client's message, whose payload and headers are read when they are asked for, which is when its
 * handler starts. Of a full lane most events wait, and what is kept for them costs more, in copies by the garbage collector,
 * than anything that is done with them (ADR 13).
 */
export class MessageDelivery implements Delivery {
  readonly consumer: string;
  readonly subject: string;
  readonly seq: number;
  readonly deliverySeq: number;
  readonly deliveries: number;
  readonly stamp: string;
  readonly reply: string;
  /** Headers, then payload. */
  readonly #raw: Uint8Array;
  readonly #headerBytes: number;
  /** Where `#raw` has no headers: those that the client has read. */
  readonly #headers: MsgHdrs | undefined;

  constructor(message: Msg, reply: string, described: AckSubject) {
    this.consumer = described.consumer;
    this.subject = message.subject;
    this.seq = described.seq;
    this.deliverySeq = described.deliverySeq;
    this.deliveries = described.deliveries;
    this.stamp = described.stamp;
    this.reply = reply;
    const { _rdata: raw, _msg: sizes } = message as ReceivedMessage;
    if (raw instanceof Uint8Array && typeof sizes?.hdr === "number") {
      this.#raw = raw;
      this.#headerBytes = Math.max(sizes.hdr, 0);
    } else {
      this.#raw = message.data;
      this.#headerBytes = 0;
      this.#headers = message.headers;
    }
  }

  get bytes(): Uint8Array {
    return this.#headerBytes === 0 ? this.#raw : this.#raw.subarray(this.#headerBytes);
  }

  get headers(): HeaderRecord {
    return this.#headers === undefined
      ? parseHeaders(this.#raw.subarray(0, this.#headerBytes))
      : copyHeaders(this.#headers);
  }
}

/**
 * What nats.js 3.4 keeps of a message as it came: the bytes, and how many of them are headers (-1 without). Not part of its
 * interface: a client that keeps something else is asked in the documented way.
 */
interface ReceivedMessage extends Msg {
  readonly _rdata?: unknown;
  readonly _msg?: { readonly hdr?: unknown };
}
