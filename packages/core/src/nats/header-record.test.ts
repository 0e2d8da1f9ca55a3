import { headers, type Msg, type MsgHdrs } from "@nats-io/nats-core";
import { MsgHdrsImpl, MsgImpl } from "@nats-io/nats-core/internal";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { headerRecord, parseHeaders } from "./header-record.js";

function blockOf(lines: readonly string[]): Uint8Array {
  return new TextEncoder().encode(`NATS/1.0\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`);
}

function byClient(block: Uint8Array): Record<string, string[]> {
  return Object.fromEntries(MsgHdrsImpl.decode(block));
}

/** A message as the client makes it of what the server sends. */
function received(hdrs: MsgHdrs | undefined): Msg {
  const block = hdrs === undefined ? new Uint8Array(0) : (hdrs as MsgHdrsImpl).encode();
  const data = new Uint8Array([...block, ...new TextEncoder().encode("{}")]);
  const subject = new TextEncoder().encode("orders.0.k.t");
  const hdr = hdrs === undefined ? -1 : block.length;
  return new MsgImpl({ subject, sid: 1, hdr, size: data.length }, data, { publish: () => {} } as never);
}

describe("a header block", () => {
  test("is read as the client reads it, whatever names and values", () => {
    const name = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,12}$/);
    const value = fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n]/g, " "));
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 6 }), (pairs) => {
        const block = blockOf(pairs.map(([key, text]) => `${key}: ${text}`));
        expect({ ...parseHeaders(block) }).toEqual(byClient(block));
      }),
    );
  });

  test("keeps colons in values, the case of names, and every value of a name", () => {
    const block = blockOf(["A: b: c", "a:d", "A:  e ", "no value at all", "Nats-Msg-Id:", "Ä: ü"]);
    expect(parseHeaders(block)).toEqual({
      A: ["b: c", "e"],
      a: ["d"],
      "Nats-Msg-Id": [""],
      Ä: ["ü"],
    });
  });

  test("has names of Object.prototype only where they were sent", () => {
    expect(parseHeaders(blockOf(["x: y"])).toString).toBeUndefined();
    expect(Object.entries(parseHeaders(blockOf(["__proto__: y"])))).toEqual([["__proto__", ["y"]]]);
  });
});

describe("a message's headers", () => {
  const sent = headers();
  sent.append("Nats-Msg-Id", "id-1");
  sent.append("x", "1");
  sent.append("x", "2");
  const record = { "Nats-Msg-Id": ["id-1"], x: ["1", "2"] };

  test("are a record, and the client's own reading of them is not asked for", () => {
    const message = received(sent);
    Object.defineProperty(message, "headers", { get: () => expect.unreachable() });
    expect(headerRecord(message)).toEqual(record);
  });

  test("are an empty record where there are none", () => {
    expect(headerRecord(received(undefined))).toEqual({});
  });

  test("are found also where the client does not keep the block", () => {
    expect(headerRecord({ headers: sent } as unknown as Msg)).toEqual(record);
    expect(headerRecord({} as Msg)).toEqual({});
  });
});
