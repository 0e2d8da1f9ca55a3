import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NatsFrameReader } from "./harness/nats-frame.js";

describe("nats frames", () => {
  test("commands with and without payload, reply and headers are told apart", () => {
    const text =
      "INFO {}\r\nMSG a.b 1 2\r\nhi\r\nMSG a.b 1 _R_ 2\r\n\r\n\r\nHMSG s 9 r 12 14\r\nNATS/1.0\r\n\r\nok\r\n" +
      "PUB a 0\r\n\r\nPUB a r 1\r\nx\r\nHPUB a 12 13\r\nNATS/1.0\r\n\r\ny\r\nPING\r\n+OK\r\n-ERR 'x'\r\n";
    const frames = new NatsFrameReader().push(Buffer.from(text));
    expect(frames.map(({ op, subject, reply, payload }) => [op, subject, reply, payload.toString()])).toEqual(
      [
        ["INFO", "", "", ""],
        ["MSG", "a.b", "", "hi"],
        ["MSG", "a.b", "_R_", "\r\n"],
        ["HMSG", "s", "r", "ok"],
        ["PUB", "a", "", ""],
        ["PUB", "a", "r", "x"],
        ["HPUB", "a", "", "y"],
        ["PING", "", "", ""],
        ["+OK", "", "", ""],
        ["-ERR", "", "", ""],
      ],
    );
    expect(frames.map((frame) => frame.bytes.toString()).join("")).toBe(text);
    expect(frames[3]?.headers).toBe("NATS/1.0\r\n\r\n");
  });

  test("however the stream is cut, the same commands come out and no byte is lost", () => {
    const command = fc.oneof(
      fc.constantFrom("PING\r\n", "+OK\r\n", 'INFO {"a":1}\r\n'),
      fc.string().map((body) => `MSG s 1 ${Buffer.byteLength(body)}\r\n${body}\r\n`),
      fc.string({ unit: "binary" }).map((body) => `PUB s r ${Buffer.byteLength(body)}\r\n${body}\r\n`),
    );
    fc.assert(
      fc.property(fc.array(command), fc.array(fc.nat(40), { minLength: 1 }), (commands, cuts) => {
        const stream = Buffer.from(commands.join(""));
        const reader = new NatsFrameReader();
        const seen: string[] = [];
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const size = (cuts[turn % cuts.length] ?? 0) + 1;
          seen.push(...reader.push(stream.subarray(at, at + size)).map((frame) => frame.bytes.toString()));
          at += size;
        }
        expect(seen).toEqual(commands.map((each) => Buffer.from(each).toString()));
        expect(reader.pendingBytes).toBe(0);
      }),
    );
  });

  test("what is not NATS is refused instead of being passed on by halves", () => {
    expect(() => new NatsFrameReader().push(Buffer.from("PUB a b c d\r\n"))).toThrow(/not NATS/);
    expect(() => new NatsFrameReader().push(Buffer.alloc(1024 * 1024 + 1, "x"))).toThrow(/without an end/);
  });
});
