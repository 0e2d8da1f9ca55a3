import type { BucketEntry, WriteOutcome } from "../../packages/core/src/runtime/bucket-port.js";

/** The bucket's leader: records changed by compare-and-set, one revision for every write. */
export class SimBucket {
  readonly #records = new Map<string, BucketEntry>();
  readonly #watchers = new Set<(entry: BucketEntry) => void>();
  #revision = 0;

  read(key: string): BucketEntry | undefined {
    return this.#records.get(key);
  }

  write(key: string, value: string | undefined, expected: number): WriteOutcome {
    if ((this.#records.get(key)?.revision ?? 0) !== expected) return { type: "conflict" };
    const entry: BucketEntry = { key, revision: ++this.#revision, value };
    this.#records.set(key, entry);
    for (const told of [...this.#watchers]) told(entry);
    return { type: "written", revision: entry.revision };
  }

  /** Takes the mark of a removal away: then the record was never written. */
  forget(key: string, revision: number): void {
    if (this.#records.get(key)?.revision === revision) this.#records.delete(key);
  }

  keys(prefix: string): string[] {
    return [...this.#records.values()].flatMap(({ key, value }) =>
      key.startsWith(prefix) && value !== undefined ? [key] : [],
    );
  }

  entries(prefix: string): BucketEntry[] {
    return [...this.#records.values()].filter(({ key }) => key.startsWith(prefix));
  }

  observe(told: (entry: BucketEntry) => void): () => void {
    this.#watchers.add(told);
    return () => this.#watchers.delete(told);
  }
}
