const STALLED_MS = 45_000;
const CHECK_MS = 1_000;

interface Goal<M> {
  readonly count: number;
  readonly reach: (mark: M) => void;
}

/**
 * Counts what is done in a run, and takes a mark at the very event that reaches a count. Dispose of it: waits that
 * are then still open never settle.
 */
export class Progress<M> implements Disposable {
  done = 0;
  readonly #mark: () => M;
  readonly #timers = new Set<NodeJS.Timeout>();
  #goals: Goal<M>[] = [];
  #nextGoal = Number.POSITIVE_INFINITY;
  #first: M | undefined;
  #tellFirst: ((mark: M) => void) | undefined;

  constructor(mark: () => M) {
    this.#mark = mark;
  }

  /** A mark of now. */
  now(): M {
    return this.#mark();
  }

  /** Something begins. */
  begin(): void {
    if (this.#first !== undefined) return;
    this.#first = this.#mark();
    this.#tellFirst?.(this.#first);
  }

  /** So many are done. */
  end(done: number): void {
    this.done = done;
    if (done < this.#nextGoal) return;
    const mark = this.#mark();
    for (const goal of this.#goals) if (goal.count <= done) goal.reach(mark);
    this.#goals = this.#goals.filter(({ count }) => count > done);
    this.#nextGoal = Math.min(Number.POSITIVE_INFINITY, ...this.#goals.map(({ count }) => count));
  }

  /** The mark at the first beginning, past or to come. */
  first(): Promise<M> {
    if (this.#first !== undefined) return Promise.resolve(this.#first);
    return this.#unlessStalled("the first event", (resolve) => {
      this.#tellFirst = resolve;
    });
  }

  /** The mark when `count` are done; of now, when they are. Rejects when nothing more gets done for 45 s. */
  reached(count: number): Promise<M> {
    if (this.done >= count) return Promise.resolve(this.#mark());
    return this.#unlessStalled(`${count} events`, (reach) => {
      this.#goals.push({ count, reach });
      this.#nextGoal = Math.min(this.#nextGoal, count);
    });
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #unlessStalled(what: string, wait: (resolve: (mark: M) => void) => void): Promise<M> {
    return new Promise((resolve, reject) => {
      let seen = this.done;
      let since = performance.now();
      const finish = (settle: () => void) => {
        clearInterval(timer);
        this.#timers.delete(timer);
        settle();
      };
      const timer = setInterval(() => {
        const now = performance.now();
        if (this.done !== seen) {
          seen = this.done;
          since = now;
        } else if (now - since > STALLED_MS) {
          const text = `waiting for ${what}: after ${this.done} nothing was done for ${STALLED_MS} ms`;
          finish(() => reject(new Error(text)));
        }
      }, CHECK_MS);
      this.#timers.add(timer);
      wait((mark) => finish(() => resolve(mark)));
    });
  }
}
