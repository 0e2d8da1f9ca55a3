/**
 * A map that keeps what was used lately, bounded by count. Two halves: when the young one is full
 * it becomes the old one and the former old one is dropped, so a look-up costs one or two map reads
 * and nothing is ever re-ordered. What was used within the last `maxEntries / 2` distinct additions is
 * always there.
 */
export class BoundedCache<V extends object> {
  readonly #half: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  /** @param maxEntries at least 2 */
  constructor(maxEntries: number) {
    this.#half = Math.max(1, Math.floor(maxEntries / 2));
  }

  get(name: string): V | undefined {
    const young = this.#young.get(name);
    if (young !== undefined) return young;
    const old = this.#old.get(name);
    if (old !== undefined) this.set(name, old);
    return old;
  }

  set(name: string, value: V): void {
    if (this.#young.size >= this.#half) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(name, value);
  }

  /** Entries held, at most `maxEntries`; one that was used again can count twice. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }
}
