import type { MsgHdrs } from "@nats-io/nats-core";

const none: Readonly<Record<string, readonly string[]>> = Object.freeze({});

/** A message's headers as a plain record; `Object.prototype` names are as good as others. */
export function headerRecord(headers: MsgHdrs | undefined): Readonly<Record<string, readonly string[]>> {
  if (headers === undefined) return none;
  const record: Record<string, readonly string[]> = Object.create(null);
  for (const [name, values] of headers) record[name] = values;
  return record;
}
