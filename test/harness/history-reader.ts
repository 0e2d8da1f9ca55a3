import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import type { HistoryRecord } from "./history-record.js";

/** Reads what the processes of one history folder have written, and next time only what is new. */
export class HistoryReader {
  readonly #folder: string;
  readonly #files = new Map<string, FileTail>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Every process's records in one list, in order of time; those of one process stay in the order it wrote them.
   *
   * A last line without its newline is left out: its process was killed while it wrote, or is still writing.
   *
   * @throws Error on any other line that is no record, and on a counter that skips: a history with holes proves nothing.
   */
  read(): HistoryRecord[] {
    for (const name of readdirSync(this.#folder)) {
      if (name.endsWith(".ndjson") && !this.#files.has(name)) {
        this.#files.set(name, new FileTail(join(this.#folder, name)));
      }
    }
    const records = [...this.#files.values()].flatMap((file) => file.read());
    return records.sort((a, b) => a.atMs - b.atMs || compare(a.process, b.process) || a.n - b.n);
  }
}

class FileTail {
  readonly #path: string;
  readonly #records: HistoryRecord[] = [];
  #offset = 0;

  constructor(path: string) {
    this.#path = path;
  }

  read(): readonly HistoryRecord[] {
    const added = readFrom(this.#path, this.#offset);
    const end = added.lastIndexOf("\n") + 1; // What is behind it is torn, or not all written yet.
    this.#offset += end;
    for (const line of added.toString("utf8", 0, end).split("\n").slice(0, -1)) this.#take(line);
    return this.#records;
  }

  #take(line: string): void {
    const at = `${this.#path}:${this.#records.length + 1}`;
    const record = parse(line);
    if (record === undefined) throw new Error(`${at} is no record: ${line.slice(0, 200)}`);
    if (record.n !== this.#records.length + 1) throw new Error(`${at} has counter ${record.n}`);
    this.#records.push(record);
  }
}

const CHUNK_BYTES = 4 * 1024 * 1024;

function readFrom(path: string, offset: number): Buffer {
  const file = openSync(path, "r");
  try {
    const chunks: Buffer[] = [];
    for (let at = offset; ; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const count = readSync(file, chunk, 0, CHUNK_BYTES, at);
      if (count === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, count));
      at += count;
    }
  } finally {
    closeSync(file);
  }
}

function parse(line: string): HistoryRecord | undefined {
  try {
    const record = JSON.parse(line) as HistoryRecord;
    return typeof record.kind === "string" && typeof record.atMs === "number" ? record : undefined;
  } catch {
    return undefined;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
