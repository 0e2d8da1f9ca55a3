import type { SettledMemory } from "./lane-machine.js";

/** What is settled of a lane, in bounded size: everything up to `top` but the `open` sequences, which MaxAckPending bounds. */
export interface ProgressRecord {
  readonly top: number;
  /** The time stamp of the event at `top`; a younger event under a sequence below it uses the sequence a second time. */
  readonly stamp: string;
  readonly open: readonly number[];
}

/**
 * An owner's knowledge of its lane. Deliveries come in an unbroken run (O5), so whatever was delivered and is not open is
 * settled: no memory of single events is needed, whatever happens above a key that is stuck.
 */
export class LaneProgress implements SettledMemory {
  #top = 0;
  #stamp = "";
  readonly #open = new Set<number>();

  /** Knowledge of the previous owner, read from the claim. */
  restore(record: ProgressRecord | undefined): void {
    this.clear();
    if (record === undefined) return;
    this.#top = record.top;
    this.#stamp = record.stamp;
    for (const seq of record.open) this.#open.add(seq);
  }

  record(): ProgressRecord | undefined {
    if (this.#top === 0) return undefined;
    return { top: this.#top, stamp: this.#stamp, open: [...this.#open].sort((a, b) => a - b) };
  }

  /** The sequence below which everything is settled. */
  get floor(): number {
    let floor = this.#top + 1;
    for (const seq of this.#open) floor = Math.min(floor, seq);
    return floor;
  }

  isSettled(seq: number, stamp: string): boolean {
    return seq <= this.#top && !this.#open.has(seq) && !isYounger(stamp, this.#stamp);
  }

  delivered(seq: number, stamp: string): void {
    if (seq <= this.#top && isYounger(stamp, this.#stamp)) this.clear();
    if (seq > this.#top) {
      this.#top = seq;
      this.#stamp = stamp;
    }
    this.#open.add(seq);
  }

  settled(seq: number): void {
    this.#open.delete(seq);
  }

  clear(): void {
    this.#top = 0;
    this.#stamp = "";
    this.#open.clear();
  }
}

/** Compares nanoseconds since the epoch as text: more digits are later. */
function isYounger(stamp: string, than: string): boolean {
  return stamp.length === than.length ? stamp > than : stamp.length > than.length;
}
