/** One request for a handler slot. */
export interface SlotRequest {
  /** Called once, when the slot is the caller's; it must call `release` of the queue once done. */
  grant(): void;
}

/**
 * Caps handlers at once over all lanes of a worker. Lanes with requests take turns, and within a lane the first comes
 * first: a lane with many keys does not hold up one with few. While there is a reason to pause nothing is granted.
 */
export class SlotQueue {
  readonly #capacity: number;
  /** Lanes with requests, in the order of their turns. */
  readonly #lanes = new Map<number, SlotRequest[]>();
  readonly #reasons = new Set<string>();
  #used = 0;
  #serving = false;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get used(): number {
    return this.#used;
  }

  request(lane: number, request: SlotRequest): void {
    if (this.#reasons.size === 0 && this.#used < this.#capacity && this.#lanes.size === 0) {
      this.#used++;
      request.grant();
      return;
    }
    const waiting = this.#lanes.get(lane);
    if (waiting === undefined) this.#lanes.set(lane, [request]);
    else waiting.push(request);
  }

  release(): void {
    this.#used--;
    this.#serve();
  }

  /** Several reasons may hold at once; each is taken back by itself. */
  pause(reason: string): void {
    this.#reasons.add(reason);
  }

  resume(reason: string): void {
    if (this.#reasons.delete(reason)) this.#serve();
  }

  #serve(): void {
    // A grant may release at once (its event has lapsed); thousands of those in a row must not nest.
    if (this.#serving) return;
    this.#serving = true;
    try {
      while (this.#reasons.size === 0 && this.#used < this.#capacity && this.#lanes.size > 0)
        this.#grantNext();
    } finally {
      this.#serving = false;
    }
  }

  #grantNext(): void {
    const turn = this.#lanes.entries().next();
    if (turn.done) return;
    const [lane, waiting] = turn.value;
    // To the end of the row, as long as it has more.
    this.#lanes.delete(lane);
    const next = waiting.shift();
    if (waiting.length > 0) this.#lanes.set(lane, waiting);
    this.#used++;
    next?.grant();
  }
}
