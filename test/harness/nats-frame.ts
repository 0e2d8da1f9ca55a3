/** One command of the NATS client protocol, with its payload if it carries one. */
export interface NatsFrame {
  /** Upper case: `MSG`, `HMSG`, `PUB`, `HPUB`, `INFO`, `CONNECT`, `SUB`, `PING`, `+OK`, `-ERR`… */
  readonly op: string;
  /** The command's line without its CRLF. */
  readonly line: string;
  /** Of MSG, HMSG, PUB and HPUB; otherwise empty. */
  readonly subject: string;
  /** The reply subject of MSG, HMSG, PUB and HPUB; otherwise, or when there is none, empty. */
  readonly reply: string;
  /** The raw header block of HMSG and HPUB (`NATS/1.0…`); otherwise empty. */
  readonly headers: string;
  /** Without headers and the closing CRLF; empty for a command that carries none. */
  readonly payload: Buffer;
  /** Exactly what was read, CRLFs included. */
  readonly bytes: Buffer;
}

/** A longer command line than any server or client sends: whoever sends one does not speak NATS. */
const MAX_LINE_BYTES = 1024 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Cuts a byte stream of either direction into whole commands. A command is held back until its last byte is
 * there, so that whatever is left out leaves a valid stream. Not for TLS.
 */
export class NatsFrameReader {
  #rest: Buffer = NOTHING;

  /** Bytes of a command that is not complete yet. */
  get pendingBytes(): number {
    return this.#rest.length;
  }

  /** @throws Error on bytes that are no NATS protocol. */
  push(chunk: Buffer): NatsFrame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: NatsFrame[] = [];
    let offset = 0;
    for (;;) {
      const frame = readFrame(this.#rest, offset);
      if (frame === undefined) break;
      frames.push(frame);
      offset += frame.bytes.length;
    }
    this.#rest = offset === 0 ? this.#rest : this.#rest.subarray(offset);
    return frames;
  }
}

function readFrame(buffer: Buffer, offset: number): NatsFrame | undefined {
  const lineEnd = buffer.indexOf("\r\n", offset, "latin1");
  if (lineEnd < 0) {
    if (buffer.length - offset > MAX_LINE_BYTES) throw new Error("not NATS: a command line without an end");
    return undefined;
  }
  const line = buffer.toString("utf8", offset, lineEnd);
  const [first = "", ...args] = line.trim().split(/[ \t]+/);
  const op = first.toUpperCase();
  const sizes = payloadSizes(op, args);
  if (sizes === undefined) {
    const bytes = buffer.subarray(offset, lineEnd + 2);
    return { op, line, subject: "", reply: "", headers: "", payload: NOTHING, bytes };
  }
  const bodyAt = lineEnd + 2;
  const end = bodyAt + sizes.total + 2;
  if (buffer.length < end) return undefined;
  return {
    op,
    line,
    subject: args[0] ?? "",
    reply: sizes.reply,
    headers: buffer.toString("utf8", bodyAt, bodyAt + sizes.header),
    payload: buffer.subarray(bodyAt + sizes.header, bodyAt + sizes.total),
    bytes: buffer.subarray(offset, end),
  };
}

/**
 * `MSG subject sid [reply] total`, `HMSG subject sid [reply] header total`, `PUB subject [reply] total`,
 * `HPUB subject [reply] header total`.
 */
function payloadSizes(
  op: string,
  args: readonly string[],
): { header: number; total: number; reply: string } | undefined {
  if (op !== "MSG" && op !== "HMSG" && op !== "PUB" && op !== "HPUB") return undefined;
  const fixed = op === "MSG" || op === "HMSG" ? 2 : 1;
  const sizes = op === "HMSG" || op === "HPUB" ? 2 : 1;
  const total = Number(args.at(-1));
  const header = sizes === 2 ? Number(args.at(-2)) : 0;
  if (!Number.isSafeInteger(total) || !Number.isSafeInteger(header) || header > total) {
    throw new Error(`not NATS: ${op} ${args.join(" ")}`);
  }
  return { header, total, reply: args.length > fixed + sizes ? (args[fixed] ?? "") : "" };
}
