import { expect, test } from "vitest";
import { ConsumerAcks, parseAckSubject } from "./ack-subject.js";

const older = "$JS.ACK.S.c.2.345.67.1764437000123456789.8";
const newer = "$JS.ACK.dom.acc.S.c.2.345.67.1764437000123456789.8.token";
const described = {
  stream: "S",
  consumer: "c",
  deliveries: 2,
  seq: 345,
  deliverySeq: 67,
  stamp: "1764437000123456789",
};

test("both forms of a delivery's reply subject say the same, whoever reads them", () => {
  const acks = new ConsumerAcks("S", "c");
  for (const reply of [older, newer]) {
    expect(parseAckSubject(reply)).toEqual(described);
    expect(acks.read(reply)).toEqual(described);
  }
});

test("the newer form is not mistaken for the older one where domain and account are named like stream and consumer", () => {
  const reply = "$JS.ACK.S.c.S.c.2.345.67.1764437000123456789.8";
  expect(new ConsumerAcks("S", "c").read(reply)).toEqual(described);
});

test.each([
  ["another consumer's", "$JS.ACK.S.d.2.345.67.1764437000123456789.8"],
  ["one whose consumer begins alike", "$JS.ACK.S.cc.2.345.67.1764437000123456789.8"],
  ["another consumer's in the newer form", "$JS.ACK.dom.acc.S.d.2.345.67.1764437000123456789.8.token"],
  ["one that ends early", "$JS.ACK.S.c.2.345.67.1764437000123456789"],
  ["one with a sequence that is no number", "$JS.ACK.S.c.2.x.67.1764437000123456789.8"],
  ["one with a delivery count of zero", "$JS.ACK.S.c.0.345.67.1764437000123456789.8"],
  ["one with an empty delivery sequence", "$JS.ACK.S.c.2.345..1764437000123456789.8"],
  ["an inbox", "_INBOX.abc.1"],
])("a reply subject of no delivery of the consumer is not read: %s", (_, reply) => {
  expect(new ConsumerAcks("S", "c").read(reply)).toBeUndefined();
});
