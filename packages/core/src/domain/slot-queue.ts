/** One request for a handler slot. */
export interface SlotRequest {
  /** Called once, when the slot is the caller's; it must call `release` of the queue once done. */
  grant(): void;
}

/**
 * Caps handlers at once over all lanes of a worker. Lanes with requests take turns, and within a lane the first comes
 * first: a lane with many keys does not hold up one with few. While paused nothing is granted.
 */
export class SlotQueue {
  readonly #capacity: number;
  #used = 0;
  #paused = false;
  /** Lanes with requests, in the order of their turns. */
  readonly #lanes = new Map<number, SlotRequest[]>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get used(): number {
    return this.#used;
  }

  request(lane: number, request: SlotRequest): void {
    if (!this.#paused && this.#used < this.#capacity && this.#lanes.size === 0) {
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

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#serve();
  }

  #serve(): void {
    while (!this.#paused && this.#used < this.#capacity) {
      const turn = this.#lanes.entries().next();
      if (turn.done) return;
      const [lane, waiting] = turn.value;
      // To the end of the row, as long as it has more.
      this.#lanes.delete(lane);
      const next = waiting.shift();
      if (waiting.length > 0) this.#lanes.set(lane, waiting);
      if (next === undefined) continue;
      this.#used++;
      next.grant();
    }
  }
}
