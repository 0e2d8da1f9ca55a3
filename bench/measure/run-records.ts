import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/** A start or an end of a handler; `at` in milliseconds of `monotonicMs()`. */
export interface RunRecord {
  readonly type: "start" | "end";
  readonly key: number;
  readonly n: number;
  readonly at: number;
}

const FIELDS = 4;
const BYTES = FIELDS * Float64Array.BYTES_PER_ELEMENT;

/** Writes records to a file, `buffered` of them at once: with 1, what has been written survives a SIGKILL. */
export class RunRecorder implements Disposable {
  readonly #file: number;
  readonly #buffer: Float64Array;
  #used = 0;

  constructor(path: string, buffered: number) {
    this.#file = openSync(path, "w");
    this.#buffer = new Float64Array(buffered * FIELDS);
  }

  record({ type, key, n, at }: RunRecord): void {
    this.#buffer.set([type === "start" ? 0 : 1, key, n, at], this.#used);
    this.#used += FIELDS;
    if (this.#used === this.#buffer.length) this.#write();
  }

  [Symbol.dispose](): void {
    this.#write();
    closeSync(this.#file);
  }

  #write(): void {
    const bytes = new Uint8Array(this.#buffer.buffer, 0, this.#used * Float64Array.BYTES_PER_ELEMENT);
    for (let written = 0; written < bytes.length; ) written += writeSync(this.#file, bytes, written);
    this.#used = 0;
  }
}

/** All whole records of a file, in the order in which they were written. */
export function readRunRecords(path: string): RunRecord[] {
  const bytes = readFileSync(path);
  const whole = bytes.length - (bytes.length % BYTES);
  const values = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + whole));
  return Array.from({ length: values.length / FIELDS }, (_, index) => {
    const [type = 0, key = 0, n = 0, at = 0] = values.subarray(index * FIELDS, (index + 1) * FIELDS);
    return { type: type === 0 ? "start" : "end", key, n, at };
  });
}
