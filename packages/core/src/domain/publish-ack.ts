/** What a reply to a publish says. */
export type PublishAnswer =
  | {
      readonly type: "stored";
      readonly stream: string;
      /** Of a batch, its last event's. */
      readonly seq: number;
      readonly duplicate: boolean;
      /** Events of the atomic batch that this is the answer to. */
      readonly count?: number;
    }
  | {
      readonly type: "error";
      /** HTTP-like class: 400, 500, 503. */
      readonly status: number;
      /** JetStream's `err_code`. */
      readonly code: number;
      readonly description: string;
    };

const decoder = new TextDecoder();

/**
 * Reads a PubAck. Undefined: these bytes are none, so they say nothing about the event. (Whoever subscribes to the
 * subject can answer a publish, too.)
 */
export function parsePublishAnswer(data: Uint8Array): PublishAnswer | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(decoder.decode(data));
  } catch {
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null) return undefined;
  const { stream, seq, duplicate, count, error } = parsed as Record<string, unknown>;
  if (typeof error === "object" && error !== null) {
    const { code, err_code, description } = error as Record<string, unknown>;
    if (typeof err_code !== "number") return undefined;
    return {
      type: "error",
      status: typeof code === "number" ? code : 0,
      code: err_code,
      description: typeof description === "string" ? description : "",
    };
  }
  if (typeof stream !== "string" || !Number.isSafeInteger(seq) || (seq as number) < 1) return undefined;
  const stored = { type: "stored", stream, seq: seq as number, duplicate: duplicate === true } as const;
  return typeof count === "number" ? { ...stored, count } : stored;
}

/**
 * Reads the sequence of the answer that nearly all publishes get, `{"stream":"ORDERS","seq":7}` (up to 2.12 with a
 * space after the comma), without decoding or parsing text, which at this rate shows.
 * 0: it is anything else, for {@link parsePublishAnswer} to read.
 */
export class PlainAckReader {
  readonly #prefix: Uint8Array;

  constructor(stream: string) {
    this.#prefix = new TextEncoder().encode(`{"stream":${JSON.stringify(stream)},`);
  }

  seqOf(data: Uint8Array): number {
    const prefix = this.#prefix;
    for (let i = 0; i < prefix.length; i++) if (data[i] !== prefix[i]) return 0;
    let at = prefix.length;
    if (data[at] === 0x20) at++;
    for (let i = 0; i < seqField.length; i++) if (data[at + i] !== seqField[i]) return 0;
    at += seqField.length;
    const end = data.length - 1;
    // Sixteen digits could pass the safe integers; those go the long way.
    if (data[end] !== 0x7d || end - at > 15) return 0;
    let seq = 0;
    for (; at < end; at++) {
      const digit = (data[at] ?? 0) - 0x30;
      if (digit < 0 || digit > 9) return 0;
      seq = seq * 10 + digit;
    }
    return seq;
  }
}

const seqField = new TextEncoder().encode('"seq":');
