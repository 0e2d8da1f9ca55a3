import type { Clock } from "../../packages/core/src/runtime/clock.js";
import type { SimProcess } from "./sim-process.js";

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  stopped: boolean;
}

/** Steps given to one turn of the event loop: Node.js lets promises settle between any two of them. */
const stepsPerTurn = 64;

/** More than this is a loop that time does not leave. */
const maxSteps = 2_000_000;

/**
 * Virtual time: what is planned runs in order of its time, then in order of planning. Promises settle completely between
 * two of them, so that the same plan always has the same course.
 */
export class Timeline {
  readonly #heap: Entry[] = [];
  #now = 0;
  #order = 0;
  /** Whose code runs, promises included; undefined: the server's or the simulation's own. */
  static #current: SimProcess | undefined;
  steps = 0;

  /** The clock of the process whose code runs, for planted faults that need to know the time. */
  static clockOfCurrent(): Clock {
    if (Timeline.#current === undefined) throw new Error("no process's code runs");
    return Timeline.#current.clock;
  }

  get now(): number {
    return this.#now;
  }

  /** Runs `run` at `at`, or now when that has gone by. */
  plan(at: number, run: () => void): { stop(): void } {
    const entry: Entry = { at: Math.max(at, this.#now), order: ++this.#order, run, stopped: false };
    this.#push(entry);
    return {
      stop: () => {
        entry.stopped = true;
      },
    };
  }

  after(ms: number, run: () => void): { stop(): void } {
    return this.plan(this.#now + ms, run);
  }

  /** Runs until `done`, which is asked before every step, or until there is nothing left. */
  run(done: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let over = false;
      const step = () => {
        if (over) return;
        try {
          const next = done() ? undefined : this.#next();
          if (next !== undefined) {
            this.#now = next.at;
            if (++this.steps > maxSteps) throw new Error(`no end after ${maxSteps} steps, at ${next.at}`);
            Timeline.#current = undefined;
            return next.run();
          }
          over = true;
          resolve();
        } catch (error) {
          over = true;
          reject(error);
        }
      };
      const turn = () => {
        if (over) return;
        for (let i = 0; i < stepsPerTurn; i++) setImmediate(step);
        setImmediate(turn);
      };
      turn();
    });
  }

  /** From here on it is this process's code that runs. */
  enter(process: SimProcess): void {
    Timeline.#current = process;
  }

  #next(): Entry | undefined {
    for (let next = this.#pop(); next !== undefined; next = this.#pop()) if (!next.stopped) return next;
    return undefined;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Entry;
      if (before(above, entry)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const child = right < heap.length && before(heap[right] as Entry, heap[left] as Entry) ? right : left;
      if (before(last, heap[child] as Entry)) break;
      heap[index] = heap[child] as Entry;
      index = child;
    }
    heap[index] = last;
    return top;
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
