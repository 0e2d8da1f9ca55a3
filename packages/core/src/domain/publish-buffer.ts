import { LanekeeperError } from "./lanekeeper-error.js";
import { KeyLine, type PendingPublish } from "./publish-pending.js";

export interface PublishBufferLimits {
  readonly maxPending: number;
  readonly maxPendingBytes: number;
}

/** With many keys, as many as a server nearby can have under way. */
const usefulNearby = 2_048;
/** Few keys wait for their turns, and their runs are to grow long enough for batches. */
const usefulAtMost = 4_096;
const fewKeys = 64;

/** Every key's events, bounded by count and bytes over all keys. A key without events takes nothing. */
export class PublishBuffer<P extends PendingPublish> {
  readonly #limits: PublishBufferLimits;
  readonly #lines = new Map<string, KeyLine<P>>();
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

  /** Keys that have events. */
  get keys(): number {
    return this.#lines.size;
  }

  /** How many more events fit, each as large as the largest seen. */
  get room(): number {
    const { maxPending, maxPendingBytes } = this.#limits;
    const fit = Math.floor((maxPendingBytes - this.#bytes) / Math.max(this.#largest, 1));
    return Math.max(Math.min(maxPending - this.#count, fit), 0);
  }

  /**
   * How many more events are worth having here: no more than {@link room}, and no more than can be sent soon. Events
   * that wait for long outlive the young generation of the heap and are copied there again and again (ADR 0012).
   *
   * @param far whether the server is so far away that many events are under way
   */
  usefulRoom(far: boolean): number {
    const useful = far || this.keys < fewKeys ? usefulAtMost : usefulNearby;
    return Math.min(this.room, useful - this.#count);
  }

  /** How much room who waits for it is to find at least: a quarter of what is useful and fits. */
  get enoughRoom(): number {
    const { maxPending, maxPendingBytes } = this.#limits;
    return Math.min(maxPending, usefulNearby, Math.floor(maxPendingBytes / Math.max(this.#largest, 1))) / 4;
  }

  /** Events may be taken out while this is walked. */
  lines(): IterableIterator<KeyLine<P>> {
    return this.#lines.values();
  }

  /** BUFFER_FULL or PAYLOAD_TOO_LARGE when there is no room for `publish`. */
  overflow({ bytes }: P): LanekeeperError | undefined {
    const { maxPending, maxPendingBytes } = this.#limits;
    if (bytes > maxPendingBytes) {
      return new LanekeeperError(
        "PAYLOAD_TOO_LARGE",
        `the event takes ${bytes} bytes and maxPendingBytes is ${maxPendingBytes}; raise it`,
      );
    }
    if (bytes > this.#largest) this.#largest = bytes;
    if (this.#count < maxPending && this.#bytes + bytes <= maxPendingBytes) return undefined;
    return new LanekeeperError(
      "BUFFER_FULL",
      `the buffer holds ${this.#count} events of ${this.#bytes} bytes (maxPending ${maxPending}, maxPendingBytes ${maxPendingBytes}); await ready() before publishing on`,
    );
  }

  /** True: it is its key's first. */
  push(publish: P): boolean {
    this.#count++;
    this.#bytes += publish.bytes;
    const line = this.#lines.get(publish.key);
    if (line === undefined) {
      const made = new KeyLine(publish);
      publish.line = made;
      this.#lines.set(publish.key, made);
      return true;
    }
    publish.line = line;
    line.length++;
    line.tail.next = publish;
    line.tail = publish;
    return false;
  }

  /** Takes a line's first event out; returns the next one, first now. */
  dropHead(line: KeyLine<P>): P | undefined {
    const { head } = line;
    const { next } = head;
    this.#forget(line, head);
    if (next === undefined) this.#lines.delete(head.key);
    else line.head = next;
    return next;
  }

  /** Takes the event behind `before` out. */
  dropAfter(line: KeyLine<P>, before: P, dropped: P): void {
    before.next = dropped.next;
    if (line.tail === dropped) line.tail = before;
    this.#forget(line, dropped);
  }

  #forget(line: KeyLine<P>, publish: P): void {
    publish.phase = "done";
    line.length--;
    this.#count--;
    this.#bytes -= publish.bytes;
  }
}
