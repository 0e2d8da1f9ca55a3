import { headers, type Msg, type MsgHdrs } from "@nats-io/nats-core";
import { type MsgHdrsImpl, MsgImpl } from "@nats-io/nats-core/internal";
import { expect, test } from "vitest";
import { MessageDelivery } from "./message-delivery.js";

const sent = headers();
sent.append("Nats-Msg-Id", "id-1");
sent.append("x", "1");
sent.append("x", "2");
const payload = new TextEncoder().encode('{"a":1}');
const described = { stream: "S", consumer: "c", deliveries: 1, seq: 2, deliverySeq: 3, stamp: "4" };

/** A message as the client makes it of what the server sends. */
function received(hdrs: MsgHdrs | undefined): Msg {
  const block = hdrs === undefined ? new Uint8Array(0) : (hdrs as MsgHdrsImpl).encode();
  const data = new Uint8Array([...block, ...payload]);
  const subject = new TextEncoder().encode("orders.0.k.t");
  const hdr = hdrs === undefined ? -1 : block.length;
  return new MsgImpl({ subject, sid: 1, hdr, size: data.length }, data, { publish() {} } as never) as Msg;
}

function delivery(message: Msg): MessageDelivery {
  return new MessageDelivery(message, "reply", described);
}

test("payload and headers are those of the message, and the client's own reading of headers is not asked for", () => {
  const message = received(sent);
  Object.defineProperty(message, "headers", { get: () => expect.unreachable() });
  const { bytes, headers: record, subject, seq } = delivery(message);
  expect(bytes).toEqual(payload);
  expect(record).toEqual({ "Nats-Msg-Id": ["id-1"], x: ["1", "2"] });
  expect([subject, seq]).toEqual(["orders.0.k.t", 2]);
});

test("a message without headers has its payload and an empty record", () => {
  const { bytes, headers: record } = delivery(received(undefined));
  expect(bytes).toEqual(payload);
  expect(record).toEqual({});
});

test("a client that keeps a message otherwise is asked in the documented way", () => {
  const { bytes, headers: record } = delivery({
    data: payload,
    subject: "s",
    headers: sent,
    sid: 1,
  } as unknown as Msg);
  expect(bytes).toEqual(payload);
  expect(record).toEqual({ "Nats-Msg-Id": ["id-1"], x: ["1", "2"] });
  expect(delivery({ data: payload, subject: "s", sid: 1 } as unknown as Msg).headers).toEqual({});
});
