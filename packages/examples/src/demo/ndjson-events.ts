import { encodeKey, encodeType } from "@lanekeeper/partitioner";
import { byteLines } from "./byte-lines.js";
import type { InputBytes } from "./input-bytes.js";
import { InputError } from "./input-error.js";
import type { InputEvent } from "./input-event.js";
import type { KeySequences } from "./key-sequences.js";
import { type OrderValue, orderValue } from "./order-value.js";

export interface NdjsonFields {
  /** The key's field. A dot goes into nested objects: `customer.id`. */
  readonly key: string;
  /** The type's field. Default: every event is an `event`. */
  readonly type?: string;
  /** The field whose value rises within a key. */
  readonly order?: string;
}

/** nats-server takes messages of up to 1 MiB by default; the rest is room for headers. */
const MAX_LINE_BYTES = 1_000_000;

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads one JSON object per line; blank lines are passed over.
 *
 * @throws InputError naming the line, for the first one that is no event
 */
export async function* ndjsonEvents(
  input: InputBytes,
  fields: NdjsonFields,
  sequences: KeySequences,
): AsyncGenerator<InputEvent, void, undefined> {
  const tooLong = (line: number): Error =>
    InputError.at(input.name, line, `the line is longer than ${MAX_LINE_BYTES} bytes`);
  for await (const { number, bytes } of byteLines(input.chunks(), MAX_LINE_BYTES, tooLong)) {
    try {
      const text = decode(bytes);
      if (text.trim() === "") continue;
      const record = parse(text);
      const key = keyOf(record, fields.key);
      const type = typeOf(record, fields.type);
      const order = fields.order === undefined ? undefined : orderOf(record, fields.order);
      // The line's own bytes are published: nothing of it is lost in parsing and writing again.
      yield { key, type, data: bytes, place: sequences.place(key, order, `line ${number}`) };
    } catch (error) {
      if (error instanceof BadLine) throw InputError.at(input.name, number, error.message, error);
      throw error;
    }
  }
}

/** What is wrong with a line; its number is added where it is known. */
class BadLine extends Error {
  override readonly name = "BadLine";
}

function decode(bytes: Buffer): string {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    throw new BadLine("it is not UTF-8 text", { cause: error });
  }
}

function parse(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new BadLine(`it is not JSON: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new BadLine(`it must be a JSON object, and is ${show(value)}`);
  }
  return value;
}

/** A string, or a whole number, which becomes the string of its digits: 42 and "42" are one key. */
function keyOf(record: object, path: string): string {
  const value = fieldOf(record, path);
  if (value === undefined) throw new BadLine(`it has no field "${path}", which is to be its key`);
  const key = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof key !== "string") {
    throw new BadLine(`"${path}" is ${show(value)}: a key must be a string or a whole number`);
  }
  if (key === "") throw new BadLine(`"${path}" is empty: a key needs at least one character`);
  return checked(key, encodeKey);
}

function typeOf(record: object, path: string | undefined): string {
  if (path === undefined) return "event";
  const value = fieldOf(record, path);
  if (value === undefined) throw new BadLine(`it has no field "${path}", which is to be its type`);
  if (typeof value !== "string") throw new BadLine(`"${path}" is ${show(value)}: a type must be a string`);
  return checked(value, encodeType);
}

function orderOf(record: object, path: string): OrderValue {
  const order = orderValue(fieldOf(record, path));
  if (typeof order === "string") throw new BadLine(`"${path}" ${order}`);
  return order;
}

/** @param encode throws for what cannot stand in a subject. */
function checked(value: string, encode: (value: string) => string): string {
  try {
    encode(value);
    return value;
  } catch (error) {
    throw new BadLine(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** The field itself if the record has one of that very name, else along the dots. */
function fieldOf(record: object, path: string): unknown {
  if (Object.hasOwn(record, path)) return (record as Record<string, unknown>)[path];
  let value: unknown = record;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

function show(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
