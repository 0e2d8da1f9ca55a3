import type { Msg, MsgHdrs } from "@nats-io/nats-core";

const decoder = new TextDecoder();
const none: Readonly<Record<string, readonly string[]>> = Object.freeze({});

/** A message's headers as a plain record; `Object.prototype` names are as good as others. */
export function headerRecord(message: Msg): Readonly<Record<string, readonly string[]>> {
  const block = headerBlock(message);
  if (block !== undefined) return block.length === 0 ? none : parseHeaders(block);
  return message.headers === undefined ? none : copy(message.headers);
}

/**
 * The header block as it came, empty where there is none; undefined when the client does not keep it where 3.4 does. Its own
 * reading of headers costs more than all that is done with a short event otherwise (ADR 13).
 */
function headerBlock(message: Msg): Uint8Array | undefined {
  const { _rdata: data, _msg: sizes } = message as { _rdata?: unknown; _msg?: { hdr?: unknown } };
  if (!(data instanceof Uint8Array) || typeof sizes?.hdr !== "number") return undefined;
  return data.subarray(0, Math.max(sizes.hdr, 0));
}

/** Reads a block as nats.js does: values are trimmed, and a name that comes again adds to its values. */
export function parseHeaders(block: Uint8Array): Readonly<Record<string, readonly string[]>> {
  const text = decoder.decode(block);
  const record: Record<string, string[]> = Object.create(null);
  // The first line has the protocol's version.
  for (let at = text.indexOf("\r\n"); at >= 0; ) {
    const from = at + 2;
    at = text.indexOf("\r\n", from);
    const end = at < 0 ? text.length : at;
    const colon = text.indexOf(":", from);
    if (colon < 0 || colon >= end) continue;
    const name = text.slice(from, colon);
    const value = text.slice(colon + 1, end).trim();
    const values = record[name];
    if (values === undefined) record[name] = [value];
    else values.push(value);
  }
  return record;
}

function copy(headers: MsgHdrs): Readonly<Record<string, readonly string[]>> {
  const record: Record<string, readonly string[]> = Object.create(null);
  for (const [name, values] of headers) record[name] = values;
  return record;
}
