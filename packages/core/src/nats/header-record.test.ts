import { headers } from "@nats-io/nats-core";
import { MsgHdrsImpl } from "@nats-io/nats-core/internal";
import fc from "fast-check";
import { expect, test } from "vitest";
import { copyHeaders, parseHeaders } from "./header-record.js";

function blockOf(lines: readonly string[]): Uint8Array {
  return new TextEncoder().encode(`NATS/1.0\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`);
}

test("a header block is read as the client reads it, whatever names and values", () => {
  const name = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,12}$/);
  const value = fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n]/g, " "));
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 6 }), (pairs) => {
      const block = blockOf(pairs.map(([key, text]) => `${key}: ${text}`));
      const byClient = Object.fromEntries(MsgHdrsImpl.decode(block));
      expect({ ...parseHeaders(block) }).toEqual(byClient);
      expect({ ...copyHeaders(MsgHdrsImpl.decode(block)) }).toEqual(byClient);
    }),
  );
});

test("colons in values, the case of names, and every value of a name are kept", () => {
  const block = blockOf(["A: b: c", "a:d", "A:  e ", "no value at all", "Nats-Msg-Id:", "Ä: ü"]);
  const read = { A: ["b: c", "e"], a: ["d"], "Nats-Msg-Id": [""], Ä: ["ü"] };
  expect(parseHeaders(block)).toEqual(read);
});

test("names of Object.prototype are there only where they were sent", () => {
  const sent = headers();
  sent.append("x", "y");
  expect(parseHeaders(blockOf(["x: y"])).toString).toBeUndefined();
  expect(copyHeaders(sent).toString).toBeUndefined();
  expect(Object.entries(parseHeaders(blockOf(["__proto__: y"])))).toEqual([["__proto__", ["y"]]]);
});

test("no headers are an empty record", () => {
  expect(parseHeaders(new Uint8Array(0))).toEqual({});
  expect(copyHeaders(undefined)).toEqual({});
});
