import { LanekeeperError } from "./lanekeeper-error.js";
import type { PendingPublish, PublishJob } from "./publish-pending.js";

export interface PublishBufferLimits {
  readonly maxPending: number;
  readonly maxPendingBytes: number;
}

/** Every key's events in call order, bounded by count and bytes over all keys. A key without events takes nothing. */
export class PublishBuffer<J extends PublishJob> {
  readonly #limits: PublishBufferLimits;
  /** The first event of each key that has any; the others hang on it. */
  readonly #heads = new Map<string, PendingPublish<J>>();
  #count = 0;
  #bytes = 0;
  #largest = 0;

  constructor(limits: PublishBufferLimits) {
    this.#limits = limits;
  }

  /** Events held. */
  get count(): number {
    return this.#count;
  }

  /** How many more events fit; none as long as one as large as the largest seen would not. */
  get room(): number {
    const { maxPending, maxPendingBytes } = this.#limits;
    if (this.#count === 0) return maxPending;
    if (this.#bytes + this.#largest > maxPendingBytes) return 0;
    return Math.max(maxPending - this.#count, 0);
  }

  /** The first event of each key. Events may be taken out while this is walked. */
  heads(): IterableIterator<PendingPublish<J>> {
    return this.#heads.values();
  }

  /** BUFFER_FULL or PAYLOAD_TOO_LARGE when there is no room for `job`. */
  overflow(job: J): LanekeeperError | undefined {
    const { maxPending, maxPendingBytes } = this.#limits;
    if (job.bytes > maxPendingBytes) {
      return new LanekeeperError(
        "PAYLOAD_TOO_LARGE",
        `the event takes ${job.bytes} bytes and maxPendingBytes is ${maxPendingBytes}; raise it`,
      );
    }
    if (job.bytes > this.#largest) this.#largest = job.bytes;
    if (this.#count < maxPending && this.#bytes + job.bytes <= maxPendingBytes) return undefined;
    return new LanekeeperError(
      "BUFFER_FULL",
      `the buffer holds ${this.#count} events of ${this.#bytes} bytes (maxPending ${maxPending}, maxPendingBytes ${maxPendingBytes}); await ready() before publishing on`,
    );
  }

  /** True: it is its key's first. */
  push(publish: PendingPublish<J>): boolean {
    this.#count++;
    this.#bytes += publish.job.bytes;
    const head = this.#heads.get(publish.job.key);
    if (head === undefined) {
      this.#heads.set(publish.job.key, publish);
      return true;
    }
    head.tail.next = publish;
    head.tail = publish;
    return false;
  }

  /** Takes a key's first event out; returns the next one, first now. */
  dropHead(head: PendingPublish<J>): PendingPublish<J> | undefined {
    this.#forget(head);
    const { next } = head;
    if (next === undefined) this.#heads.delete(head.job.key);
    else {
      next.tail = head.tail;
      this.#heads.set(head.job.key, next);
    }
    return next;
  }

  /** Takes the event behind a key's first one out. */
  dropNext(head: PendingPublish<J>, next: PendingPublish<J>): void {
    this.#forget(next);
    head.next = next.next;
    if (next.next === undefined) head.tail = head;
  }

  #forget(publish: PendingPublish<J>): void {
    publish.phase = "done";
    this.#count--;
    this.#bytes -= publish.job.bytes;
  }
}
