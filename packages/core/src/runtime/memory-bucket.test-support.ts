import type { BucketEntry, BucketPort, WriteOutcome } from "./bucket-port.js";

/** A bucket in memory whose requests a test can hold or have fail. */
export class MemoryBucket implements BucketPort {
  readonly replicas = 1;
  readonly entries = new Map<string, BucketEntry>();
  /** Awaited before a request is carried out; rejects to have it fail. */
  before: (request: "read" | "write" | "remove", key: string) => Promise<void> = async () => {};
  /** Awaited after a write was carried out, before it is answered. */
  answered: () => Promise<void> = async () => {};
  #revision = 0;

  async read(key: string): Promise<BucketEntry | undefined> {
    await this.before("read", key);
    return this.entries.get(key);
  }

  async write(key: string, value: string, expected: number): Promise<WriteOutcome> {
    await this.before("write", key);
    return this.#put(key, value, expected);
  }

  async remove(key: string, expected: number): Promise<WriteOutcome> {
    await this.before("remove", key);
    return this.#put(key, undefined, expected);
  }

  async keys(prefix: string): Promise<string[]> {
    return [...this.entries.keys()].filter((key) => key.startsWith(prefix));
  }

  watch(): { restart(): void; stop(): void } {
    return { restart() {}, stop() {} };
  }

  /** Keys whose record has not been removed. */
  get live(): string[] {
    return [...this.entries.values()].filter(({ value }) => value !== undefined).map(({ key }) => key);
  }

  async #put(key: string, value: string | undefined, expected: number): Promise<WriteOutcome> {
    if ((this.entries.get(key)?.revision ?? 0) !== expected) return { type: "conflict" };
    const revision = ++this.#revision;
    this.entries.set(key, { key, revision, value });
    await this.answered();
    return { type: "written", revision };
  }
}
