export interface ByteLine {
  /** From 1. */
  readonly number: number;
  /** Without its line feed. */
  readonly bytes: Buffer;
}

/**
 * Cuts a stream of bytes into lines, the last of which needs no line feed. Reads on only when the consumer asks for
 * more, and holds one chunk and at most one unfinished line.
 *
 * @param maxBytes the longest line that is accepted
 * @param tooLong makes the error that is thrown for a longer one
 */
export async function* byteLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
  tooLong: (line: number) => Error,
): AsyncGenerator<ByteLine, void, undefined> {
  let number = 1;
  let parts: Buffer[] = [];
  let held = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(0x0a, from);
      const part = chunk.subarray(from, end === -1 ? chunk.length : end);
      if (held + part.length > maxBytes) throw tooLong(number);
      parts.push(part);
      held += part.length;
      if (end === -1) break;
      yield { number, bytes: joined(parts) };
      number++;
      parts = [];
      held = 0;
      from = end + 1;
    }
  }
  if (held > 0) yield { number, bytes: joined(parts) };
}

function joined(parts: readonly Buffer[]): Buffer {
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
}
