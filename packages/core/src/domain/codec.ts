/** Turns data into payload bytes and back. A throw in `decode` is terminal for the event. */
export interface Codec {
  encode(data: unknown, type: string): Uint8Array;
  decode(bytes: Uint8Array, type: string): unknown;
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The default: a Uint8Array goes as it is, anything else as JSON. Decoding parses JSON; an empty payload is undefined. */
export const jsonCodec: Codec = {
  encode(data, type) {
    if (data instanceof Uint8Array) return data;
    if (data === undefined) return new Uint8Array(0);
    const text = JSON.stringify(data);
    if (text === undefined)
      throw new TypeError(`data of "${type}" is a ${typeof data}, which JSON cannot hold`);
    return Buffer.from(text);
  },
  decode(bytes) {
    return bytes.length === 0 ? undefined : JSON.parse(decoder.decode(bytes));
  },
};

/** Bytes in, bytes out. */
export const bytesCodec: Codec = {
  encode(data, type) {
    if (data instanceof Uint8Array) return data;
    throw new TypeError(`data of "${type}" is not a Uint8Array, which bytesCodec needs`);
  },
  decode: (bytes) => bytes,
};
