import { once } from "node:events";
import { open } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { InputError } from "./input-error.js";

/** An input that has been opened and not yet read. */
export interface InputBytes extends AsyncDisposable {
  /** For messages: the file's name as it was given, or `standard input`. */
  readonly name: string;
  /** The bytes, unpacked if they were gzip's. Can be read once. */
  chunks(): AsyncIterable<Buffer>;
}

/**
 * Opens a file, or standard input for `-`, so that a wrong name is found out before anything else is done.
 *
 * @throws InputError if it cannot be opened
 */
export async function openInput(path: string): Promise<InputBytes> {
  const name = path === "-" ? "standard input" : path;
  const source = path === "-" ? process.stdin : await openFile(path);
  return {
    name,
    chunks: () => unpacked(source, name),
    async [Symbol.asyncDispose]() {
      if (source === process.stdin || source.closed) return;
      const closed = once(source, "close");
      source.destroy();
      await closed;
    },
  };
}

async function openFile(path: string): Promise<Readable> {
  try {
    const file = await open(path);
    if ((await file.stat()).isDirectory()) {
      await file.close();
      throw new InputError(`${path} is a folder; --input takes a file of one JSON object per line`);
    }
    return file.createReadStream();
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`cannot open ${path}: ${reason(error)}`, { cause: error });
  }
}

/** Looks at the first two bytes: gzip begins with 1f 8b, which no JSON text does. */
async function* unpacked(source: Readable, name: string): AsyncGenerator<Buffer, void, undefined> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let head = Buffer.alloc(0);
  while (head.length < 2) {
    const next = await chunks.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  const whole = prefixed(head, chunks);
  if (head[0] !== 0x1f || head[1] !== 0x8b) {
    yield* whole;
    return;
  }
  // Errors of either end come out of the loop below; pipeline destroys both ends when it stops early.
  const gunzip = pipeline(Readable.from(whole), createGunzip(), () => {});
  try {
    for await (const chunk of gunzip) yield chunk as Buffer;
  } catch (error) {
    throw new InputError(`${name} begins like gzip and cannot be unpacked: ${reason(error)}`, {
      cause: error,
    });
  }
}

async function* prefixed(
  head: Buffer,
  rest: AsyncIterator<Buffer, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  if (head.length > 0) yield head;
  for (;;) {
    const next = await rest.next();
    if (next.done === true) return;
    yield next.value;
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
