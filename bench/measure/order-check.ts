/**
 * Counts breaches of order among the handler runs of one group, for events that carry the number of their key and,
 * per key, their place from 1 (`n`).
 *
 * - O1, O3: a first start that is not the next of its key.
 * - O2: a start while another run of the key has not ended.
 */
export class OrderCheck {
  faults = 0;
  /** Starts of events that had started before; no fault of order. */
  again = 0;
  /** First starts. */
  started = 0;
  /** First runs that have ended. */
  ended = 0;
  readonly #last: Uint32Array;
  /** Per key: 0 nothing runs, 1 a first run, 2 an event's second or later run. */
  readonly #running: Uint8Array;

  constructor(keys: number) {
    this.#last = new Uint32Array(keys);
    this.#running = new Uint8Array(keys);
  }

  start(key: number, n: number): void {
    const last = this.#last[key] ?? 0;
    if (this.#running[key] !== 0) this.faults++;
    if (n <= last) {
      this.again++;
      this.#running[key] = 2;
      return;
    }
    if (n !== last + 1) this.faults++;
    this.#last[key] = n;
    this.#running[key] = 1;
    this.started++;
  }

  end(key: number): void {
    if (this.#running[key] !== 2) this.ended++;
    this.#running[key] = 0;
  }
}
