/** One request for a handler slot. */
export interface SlotRequest {
  /** Called once, when the slot is the caller's; it must call `release` of the queue once done. */
  grant(): void;
}

/**
 * Caps handlers at once over all lanes of a worker. First come, first served: as a lane asks once per event and waits
 * for its answer, lanes and keys get their turn fairly. While paused nothing is granted.
 */
export class SlotQueue {
  readonly #capacity: number;
  #used = 0;
  #paused = false;
  #serving = false;
  #waiting: SlotRequest[] = [];
  #head = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get used(): number {
    return this.#used;
  }

  request(request: SlotRequest): void {
    if (!this.#paused && this.#used < this.#capacity && this.#head === this.#waiting.length) {
      this.#used++;
      request.grant();
    } else {
      this.#waiting.push(request);
    }
  }

  release(): void {
    this.#used--;
    this.#serve();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#serve();
  }

  #serve(): void {
    // A grant may release at once (its event has lapsed); thousands of those in a row must not nest.
    if (this.#serving) return;
    this.#serving = true;
    try {
      this.#serveWaiting();
    } finally {
      this.#serving = false;
    }
  }

  #serveWaiting(): void {
    while (!this.#paused && this.#used < this.#capacity && this.#head < this.#waiting.length) {
      const next = this.#waiting[this.#head++] as SlotRequest;
      if (this.#head > 1_024 && this.#head * 2 > this.#waiting.length) {
        this.#waiting = this.#waiting.slice(this.#head);
        this.#head = 0;
      }
      this.#used++;
      next.grant();
    }
    if (this.#head === this.#waiting.length) {
      this.#waiting = [];
      this.#head = 0;
    }
  }
}
