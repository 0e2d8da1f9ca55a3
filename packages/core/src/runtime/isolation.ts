/** Takes turns among all lanes of a worker, so that one suspect runs at a time. */
export class SuspectTurns {
  readonly #waiting: (() => void)[] = [];
  #taken = false;

  take(turn: () => void): void {
    if (this.#taken) {
      this.#waiting.push(turn);
    } else {
      this.#taken = true;
      turn();
    }
  }

  giveBack(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken = false;
    else next();
  }
}

/**
 * Writes into the claim which event runs alone, or that none does; false when it could not be written.
 *
 * @param harmless the one that ran alone did no harm; false: it did not run after all
 */
export type MarkSuspect = (seq: number | undefined, harmless?: boolean) => Promise<boolean>;

/**
 * Tells an event that kills its process from those that were only in flight when it died. A suspect of a lane starts only
 * once the claim says so, and no other suspect of the worker beside it: when the process dies then, it was this one.
 */
export class Isolation {
  readonly #turns: SuspectTurns;
  readonly #mark: MarkSuspect;
  #suspects = new Set<number>();
  #testing: number | undefined;
  #round = 0;

  constructor(turns: SuspectTurns, mark: MarkSuspect) {
    this.#turns = turns;
    this.#mark = mark;
  }

  /** The suspects among what is about to be delivered; forgets everything before. */
  begin(suspects: readonly number[]): void {
    this.end();
    this.#suspects = new Set(suspects);
  }

  end(): void {
    this.#round++;
    this.#suspects = new Set();
    if (this.#testing !== undefined) this.#turns.giveBack();
    this.#testing = undefined;
  }

  beforeStart(seq: number, begin: () => void): void {
    if (!this.#suspects.has(seq)) return begin();
    const round = this.#round;
    this.#turns.take(() => {
      if (round !== this.#round) return this.#turns.giveBack();
      this.#testing = seq;
      void this.#mark(seq).then((marked) => {
        // Not marked means not ours any more: the lane is about to be fenced or rewound, and this start with it.
        if (marked && round === this.#round) begin();
      });
    });
  }

  /** When it ran, it did no harm: it is no suspect any more. */
  afterEnd(seq: number, ran: boolean): void {
    if (this.#testing !== seq) return;
    this.#testing = undefined;
    if (ran) this.#suspects.delete(seq);
    // Only then the next one: two marks under way at once could leave the claim naming the wrong event, or none.
    const done = () => this.#turns.giveBack();
    void this.#mark(undefined, ran).then(done, done);
  }
}
