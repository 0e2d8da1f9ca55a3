import { type HeldEvent, insertInOrder, type KeyLine, newHeldEvent } from "./held-event.js";
import { type RetryPolicy, retryDelayMs } from "./retry-policy.js";

export interface LaneMachineOptions {
  readonly retry: RetryPolicy;
  readonly onExhausted: "block" | "drop";
}

/** What a lane remembers of events that are settled, so that one which comes again is acked again and not run again. */
export interface SettledMemory {
  isSettled(seq: number, stamp: string): boolean;
  delivered(seq: number, stamp: string): void;
  settled(seq: number, stamp: string): void;
  clear(): void;
}

/** What happened to a lane. `now` is monotonic milliseconds; a `run` is one start of a handler, numbered by the machine. */
export type LaneInput =
  | { type: "delivered"; seq: number; key: string; stamp: string }
  /** An event that is not this lane's to handle (foreign publisher): held, and nothing of the lane starts any more. */
  | { type: "misrouted"; seq: number; key: string; stamp: string }
  /** An event found to kill its process: held and never started; its key waits behind it. */
  | { type: "poisonous"; seq: number; key: string; stamp: string }
  | { type: "handled"; run: number }
  /** The run's handler was not called and will not be: no slot, or no hold any more. */
  | { type: "unstarted"; run: number }
  | {
      type: "failed";
      run: number;
      terminal: boolean;
      retryAfterMs?: number | undefined;
      roll: number;
      now: number;
    }
  /** Time went on: retries that are due start. */
  | { type: "tick"; now: number }
  /** The hold of this event is no longer proven (O6). */
  | { type: "lapsed"; seq: number }
  /** The stream no longer holds this event. */
  | { type: "gone"; seq: number }
  /** The consumer or the stream was made anew: nothing held is ours any more. */
  | { type: "reset"; forget: boolean }
  /** No handler starts any more; what waits is given back, once no handler of its key runs here. */
  | { type: "closing"; now: number }
  /** The lane is taken up again after `closing`. */
  | { type: "reopened" };

/** What to do about it, in this order. */
export type LaneEffect =
  | { type: "start"; seq: number; run: number; retries: number }
  /** Settled: the server may deliver the next one. `again`: it was settled before, and is not run again. */
  | { type: "ack"; seq: number; again: boolean }
  | { type: "drop"; seq: number }
  /** Give the event back to the group, to come again after `delayMs`. */
  | { type: "release"; seq: number; delayMs: number }
  | { type: "retry"; seq: number; delayMs: number }
  | { type: "blocked"; seq: number; delayMs: number }
  | { type: "misrouted"; seq: number }
  | { type: "poisonous"; seq: number }
  | { type: "lost"; seq: number }
  /** The handler's hold is gone: abort its signal. Its result will not count. */
  | { type: "fence"; seq: number; run: number }
  | { type: "wake"; at: number };

interface Run {
  readonly line: KeyLine;
  /** Undefined once the event was taken from the lane while its handler runs: the result no longer counts. */
  held: HeldEvent | undefined;
}

/**
 * One lane of one group in one worker: which event may start, be acked, retried, dropped or given back. Pure: no I/O,
 * no clock, no randomness.
 *
 * - O1, O3: events of a key queue in the order of delivery and the next one starts only when the one before is settled.
 * - O2: a key whose handler still runs is never started again, also when its event was fenced, reset or redelivered.
 * - O6: once an event's hold has lapsed nothing is sent for it and its handler's result does not count.
 */
export class LaneMachine {
  readonly #options: LaneMachineOptions;
  readonly #held = new Map<number, HeldEvent>();
  readonly #lines = new Map<string, KeyLine>();
  readonly #runs = new Map<number, Run>();
  readonly #memory: SettledMemory;
  /** Misrouted events in hand: while there is one the lane stands still. */
  #misroutes = 0;
  #lastRun = 0;
  #closing = false;

  constructor(options: LaneMachineOptions, memory: SettledMemory) {
    this.#options = options;
    this.#memory = memory;
  }

  /** Events delivered and not yet settled. */
  get held(): number {
    return this.#held.size;
  }

  /** Handlers that have not ended, fenced ones included. */
  get running(): number {
    return this.#runs.size;
  }

  isHeld(seq: number): boolean {
    return this.#held.has(seq);
  }

  /** Events that wait for a decision from outside: exhausted with onExhausted "block", poisonous, or misrouted. */
  stuck(): { seq: number; key: string; misrouted: boolean }[] {
    const stuck = [];
    for (const { seq, line, blocked, misrouted } of this.#held.values()) {
      if (blocked || misrouted) stuck.push({ seq, key: line.key, misrouted });
    }
    return stuck;
  }

  step(input: LaneInput): LaneEffect[] {
    const effects: LaneEffect[] = [];
    switch (input.type) {
      case "delivered":
        this.#delivered(input, effects);
        break;
      case "misrouted":
        this.#misrouted(input, effects);
        break;
      case "poisonous":
        this.#poisonous(input, effects);
        break;
      case "handled":
        this.#handled(input.run, effects);
        break;
      case "unstarted":
        this.#unstarted(input.run, effects);
        break;
      case "failed":
        this.#failed(input, effects);
        break;
      case "tick":
        this.#tick(input.now, effects);
        break;
      case "lapsed":
        this.#lapsed(input.seq, effects);
        break;
      case "gone":
        this.#gone(input.seq, effects);
        break;
      case "reset":
        this.#reset(input.forget, effects);
        break;
      case "closing":
        this.#close(input.now, effects);
        break;
      case "reopened":
        this.#closing = false;
        break;
    }
    return effects;
  }

  #delivered({ seq, key, stamp }: { seq: number; key: string; stamp: string }, effects: LaneEffect[]): void {
    const held = this.#accept(seq, key, stamp, effects);
    if (held !== undefined) this.#startNext(held.line, effects);
  }

  #misrouted({ seq, key, stamp }: { seq: number; key: string; stamp: string }, effects: LaneEffect[]): void {
    const held = this.#accept(seq, key, stamp, effects);
    if (held === undefined || this.#refusedWhileClosing(held, effects)) return;
    held.state = "refused";
    held.misrouted = true;
    this.#misroutes++;
    effects.push({ type: "misrouted", seq });
  }

  #poisonous({ seq, key, stamp }: { seq: number; key: string; stamp: string }, effects: LaneEffect[]): void {
    const held = this.#accept(seq, key, stamp, effects);
    if (held === undefined || this.#refusedWhileClosing(held, effects)) return;
    held.state = "refused";
    held.blocked = true;
    effects.push({ type: "poisonous", seq });
  }

  #refusedWhileClosing(held: HeldEvent, effects: LaneEffect[]): boolean {
    if (!this.#closing) return false;
    this.#take(held);
    effects.push({ type: "release", seq: held.seq, delayMs: 0 });
    return true;
  }

  /** Takes a delivered event in hand, behind the earlier ones of its key. Undefined: it was, or is not to be. */
  #accept(seq: number, key: string, stamp: string, effects: LaneEffect[]): HeldEvent | undefined {
    if (this.#memory.isSettled(seq, stamp)) {
      effects.push({ type: "ack", seq, again: true });
      return undefined;
    }
    if (!this.#isNew(seq, stamp, effects)) return undefined;
    this.#memory.delivered(seq, stamp);
    const line = this.#lineOf(key);
    const held = newHeldEvent(seq, line, stamp);
    this.#held.set(seq, held);
    insertInOrder(line.events, held);
    return held;
  }

  #lineOf(key: string): KeyLine {
    const known = this.#lines.get(key);
    if (known !== undefined) return known;
    const line: KeyLine = { key, events: [], busy: false };
    this.#lines.set(key, line);
    return line;
  }

  /** Whether the event is not held yet. Another stamp under a held sequence is another stream's event: the held one is gone. */
  #isNew(seq: number, stamp: string, effects: LaneEffect[]): boolean {
    const held = this.#held.get(seq);
    if (held === undefined) return true;
    if (held.stamp === stamp) return false;
    this.#lapsed(seq, effects);
    return true;
  }

  #unstarted(number: number, effects: LaneEffect[]): void {
    const { line, held } = this.#end(number);
    if (held !== undefined) {
      this.#take(held);
      effects.push({ type: "release", seq: held.seq, delayMs: 0 });
    }
    this.#startNext(line, effects);
  }

  #handled(number: number, effects: LaneEffect[]): void {
    const { line, held } = this.#end(number);
    if (held !== undefined) {
      this.#settle(held);
      effects.push({ type: "ack", seq: held.seq, again: false });
    }
    this.#startNext(line, effects);
  }

  #failed(input: LaneInput & { type: "failed" }, effects: LaneEffect[]): void {
    const { line, held } = this.#end(input.run);
    if (held === undefined) return this.#startNext(line, effects);
    const { retry, onExhausted } = this.#options;
    held.failures++;
    const exhausted = input.terminal || held.failures >= retry.attempts;
    if (exhausted && onExhausted === "drop") {
      this.#settle(held);
      effects.push({ type: "drop", seq: held.seq });
      return this.#startNext(line, effects);
    }
    // A blocked event is tried on at the longest delay, so that it goes on by itself once its cause is mended.
    const delayMs = exhausted
      ? retry.maxDelayMs * (1 + retry.jitter * input.roll)
      : (input.retryAfterMs ?? retryDelayMs(retry, held.failures, input.roll));
    if (this.#closing) {
      this.#take(held);
      effects.push({ type: "release", seq: held.seq, delayMs });
      return this.#startNext(line, effects);
    }
    held.state = "waiting";
    held.dueAt = input.now + delayMs;
    if (exhausted && !held.blocked) {
      held.blocked = true;
      effects.push({ type: "blocked", seq: held.seq, delayMs });
    } else {
      effects.push({ type: "retry", seq: held.seq, delayMs });
    }
    effects.push({ type: "wake", at: held.dueAt });
  }

  #tick(now: number, effects: LaneEffect[]): void {
    for (const held of this.#held.values()) {
      if (held.state !== "waiting") continue;
      if (held.dueAt > now) {
        effects.push({ type: "wake", at: held.dueAt });
      } else {
        held.state = "queued";
        this.#startNext(held.line, effects);
      }
    }
  }

  #lapsed(seq: number, effects: LaneEffect[]): void {
    const held = this.#held.get(seq);
    if (held === undefined) return;
    if (held.state === "running") this.#fence(held, effects);
    this.#take(held);
    if (!held.line.busy) this.#startNext(held.line, effects);
  }

  #gone(seq: number, effects: LaneEffect[]): void {
    const held = this.#held.get(seq);
    if (held === undefined || held.state === "running") return;
    this.#take(held);
    this.#memory.settled(held.seq, held.stamp);
    // The ack frees the pending place that a removed event can leave behind in the consumer.
    effects.push({ type: "lost", seq }, { type: "ack", seq, again: true });
    if (held.misrouted) for (const line of [...this.#lines.values()]) this.#startNext(line, effects);
    else this.#startNext(held.line, effects);
  }

  #reset(forget: boolean, effects: LaneEffect[]): void {
    for (const held of this.#held.values()) {
      if (held.state === "running") this.#fence(held, effects);
    }
    this.#held.clear();
    for (const line of this.#lines.values()) {
      line.events.length = 0;
      // O2: what runs goes on holding its key.
      if (!line.busy) this.#lines.delete(line.key);
    }
    if (forget) this.#memory.clear();
    this.#misroutes = 0;
  }

  #close(now: number, effects: LaneEffect[]): void {
    this.#closing = true;
    for (const held of [...this.#held.values()]) {
      // O2: what waits behind a handler that still runs here must not begin elsewhere; it is given back when that ends.
      if (!held.misrouted && held.line.busy) continue;
      this.#take(held);
      const delayMs = held.state === "waiting" ? Math.max(held.dueAt - now, 0) : 0;
      effects.push({ type: "release", seq: held.seq, delayMs });
    }
  }

  #startNext(line: KeyLine, effects: LaneEffect[]): void {
    if (line.busy) return;
    if (this.#closing) return this.#releaseAll(line, effects);
    if (this.#misroutes > 0) return;
    const first = line.events[0];
    if (first === undefined || first.state !== "queued") return;
    const run = ++this.#lastRun;
    first.state = "running";
    first.run = run;
    line.busy = true;
    this.#runs.set(run, { line, held: first });
    effects.push({ type: "start", seq: first.seq, run, retries: first.failures });
  }

  #releaseAll(line: KeyLine, effects: LaneEffect[]): void {
    for (const held of line.events.slice()) {
      this.#take(held);
      effects.push({ type: "release", seq: held.seq, delayMs: 0 });
    }
  }

  /** A handler ended: its key is free. */
  #end(number: number): Run {
    const run = this.#runs.get(number);
    if (run === undefined) throw new Error(`O2: run ${number} ended twice or never started`);
    this.#runs.delete(number);
    run.line.busy = false;
    if (run.line.events.length === 0) this.#lines.delete(run.line.key);
    return run;
  }

  #fence(held: HeldEvent, effects: LaneEffect[]): void {
    const run = this.#runs.get(held.run);
    if (run !== undefined) run.held = undefined;
    effects.push({ type: "fence", seq: held.seq, run: held.run });
  }

  #settle(held: HeldEvent): void {
    this.#take(held);
    this.#memory.settled(held.seq, held.stamp);
  }

  #take(held: HeldEvent): void {
    if (!this.#held.delete(held.seq)) return;
    if (held.misrouted) this.#misroutes--;
    const { line } = held;
    const index = line.events.indexOf(held);
    if (index < 0) return;
    if (index === 0) line.events.shift();
    else line.events.splice(index, 1);
    if (line.events.length === 0 && !line.busy) this.#lines.delete(line.key);
  }
}
