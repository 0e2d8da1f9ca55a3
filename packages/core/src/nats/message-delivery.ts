import type { Msg } from "@nats-io/nats-core";
import type { Delivery } from "../runtime/lane-feed-port.js";
import type { AckSubject } from "./ack-subject.js";
import { headerRecord } from "./header-record.js";

/**
 * A delivery whose payload and headers are cut out of the message when they are asked for, which is when its handler
 * starts: of a full lane most events wait, and each would keep its headers and several views of the socket's buffer.
 */
export class MessageDelivery implements Delivery {
  readonly consumer: string;
  readonly subject: string;
  readonly seq: number;
  readonly deliverySeq: number;
  readonly deliveries: number;
  readonly stamp: string;
  readonly reply: string;
  readonly #message: Msg;

  constructor(message: Msg, reply: string, described: AckSubject) {
    this.consumer = described.consumer;
    this.subject = message.subject;
    this.seq = described.seq;
    this.deliverySeq = described.deliverySeq;
    this.deliveries = described.deliveries;
    this.stamp = described.stamp;
    this.reply = reply;
    this.#message = message;
  }

  get bytes(): Uint8Array {
    return this.#message.data;
  }

  get headers(): Readonly<Record<string, readonly string[]>> {
    return headerRecord(this.#message);
  }
}
