import { describe, expect, test } from "vitest";
import { PlainAckReader, parsePublishAnswer } from "./publish-ack.js";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("the plain PubAck is read without JSON, exactly as JSON would", () => {
  const reader = new PlainAckReader("ORDERS");

  test("as 2.15 and as 2.10 write it", () => {
    expect(reader.seqOf(bytes('{"stream":"ORDERS","seq":1}'))).toBe(1);
    expect(reader.seqOf(bytes('{"stream":"ORDERS", "seq":4821}'))).toBe(4_821);
    expect(reader.seqOf(bytes('{"stream":"ORDERS","seq":999999999999999}'))).toBe(999_999_999_999_999);
  });

  test.each([
    '{"stream":"ORDERS","seq":1,"duplicate": true}',
    '{"stream":"ORDERS","domain":"hub","seq":1}',
    '{"stream":"ORDERS2","seq":1}',
    '{"stream":"ORDER","seq":1}',
    '{"stream":"ORDERS","seq":9999999999999999}',
    '{"stream":"ORDERS","seq":}',
    '{"stream":"ORDERS","seq":-1}',
    '{"stream":"ORDERS","seq":1',
    '{"error":{"code":400,"err_code":10071},"stream":"ORDERS","seq":0}',
    '{"stream":"ORDERS","seq":0}',
    "",
    "+ACK",
  ])("anything else is left to the full reader: %s", (text) => {
    expect(reader.seqOf(bytes(text))).toBe(0);
  });
});

describe("any other answer", () => {
  test("a duplicate, also with a domain", () => {
    const text = '{"stream":"ORDERS", "domain":"hub", "seq":7,"duplicate": true}';
    expect(parsePublishAnswer(bytes(text))).toEqual({
      type: "stored",
      stream: "ORDERS",
      seq: 7,
      duplicate: true,
    });
  });

  test("an error keeps code and text", () => {
    const text =
      '{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}';
    expect(parsePublishAnswer(bytes(text))).toEqual({
      type: "error",
      status: 503,
      code: 10_077,
      description: "maximum messages exceeded",
    });
  });

  test.each([
    "hello",
    "null",
    "7",
    "{}",
    '{"error":{}}',
    '{"stream":"S","seq":0}',
    '{"stream":"S","seq":1.5}',
    "\xff",
  ])("%s is no PubAck and says nothing about the event", (text) => {
    expect(parsePublishAnswer(bytes(text))).toBeUndefined();
  });
});
