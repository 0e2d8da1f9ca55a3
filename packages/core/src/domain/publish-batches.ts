import { type KeyLine, type PendingPublish, PublishBatch, troubleOf } from "./publish-pending.js";

/** The shortest run worth a batch: opening one takes the server as long as some dozen round trips (ADR 0012). */
const leastEvents = 32;
/** What nats-server takes in one batch unless it is configured otherwise. */
const mostEvents = 1_000;
/** The server holds a batch in memory until it is committed. */
const mostBytes = 1024 * 1024;
/** The server takes 50 open batches for a stream, from all its publishers. */
const mostOpen = 4;
const shortestPauseMs = 100;
const longestPauseMs = 30_000;

/**
 * A batch's end as far as it is known.
 * `none`: nothing of it is stored, nor ever will be.
 * `part`: the server is done with it; how much of it is stored is not known. What each event's own attempt is answered
 * settles it, since the server looks for duplicates first.
 * `unclear`: all of it, some or nothing may be stored, or may still be; each of its events stays an open attempt.
 */
export type BatchFailure = "none" | "part" | "unclear";

/**
 * How many events a run must have for each key that has any. The more keys there are, the better single events keep
 * the server busy. A stream with one replica makes a store in its files for each batch; others keep it in memory.
 */
export function leastEventsPerKey(replicas: number): number {
  return replicas > 1 ? 3 : 32;
}

/** Which runs go out as batches, and the batches that may still be answered. */
export class PublishBatches<P extends PendingPublish> {
  readonly #byToken = new Map<number, PublishBatch<P>>();
  /** Batches that were given up, until their last event leaves: a line has at most one. */
  readonly #givenUp = new Map<KeyLine<P>, PublishBatch<P>>();
  #leastPerKey: number | undefined;
  #distrusted = false;
  #current = 0;
  #setbacks = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  /** As the stream was last seen: {@link leastEventsPerKey}, or undefined where it takes no batches. */
  allow(leastPerKey: number | undefined): void {
    this.#leastPerKey = leastPerKey;
  }

  /** The server answered a batch as if it did not know what that is: none are sent any more. */
  distrust(): void {
    this.#distrusted = true;
  }

  /** The run at the head of a line to send as one batch; undefined: the head goes alone. */
  runOf(line: KeyLine<P>, keys: number, now: number): P[] | undefined {
    if (line.length < leastEvents || this.#leastPerKey === undefined || this.#distrusted) return undefined;
    const least = Math.max(leastEvents, this.#leastPerKey * keys);
    if (least > mostEvents || line.length < least) return undefined;
    if (this.#current >= mostOpen || now < this.#pausedUntil) return undefined;
    const run: P[] = [];
    let bytes = 0;
    for (let one: P | undefined = line.head; one !== undefined && run.length < mostEvents; one = one.next) {
      // What was tried before may be stored: it is tried alone, so that the answer is about it alone.
      if (!one.batchable || one.attempts > 0) break;
      bytes += one.bytes;
      if (bytes > mostBytes) break;
      run.push(one);
    }
    return run.length < least ? undefined : run;
  }

  /** The run goes out. */
  send(line: KeyLine<P>, events: readonly P[], token: number, now: number, dueAt: number): void {
    const batch = new PublishBatch(line, events, token, now, dueAt);
    line.batch = batch;
    this.#byToken.set(token, batch);
    this.#current++;
    for (const event of events) {
      event.phase = "batched";
      event.attempts++;
      event.open++;
      event.openSince = now;
      event.sentAt = now;
    }
  }

  /** The batch that an answer is about; undefined when its outcome is known already. */
  get(token: number): PublishBatch<P> | undefined {
    return this.#byToken.get(token);
  }

  /** The server stored it. */
  stored(batch: PublishBatch<P>): void {
    this.#end(batch);
    this.#forget(batch);
    this.#setbacks = 0;
  }

  /** The server did not store it, or whether it did is unknown. Its events may go out again, one by one. */
  failed(batch: PublishBatch<P>, failure: BatchFailure, now: number): void {
    const { current, events, line } = batch;
    if (batch.spent) return;
    if (failure === "unclear") this.#givenUp.set(line, batch);
    else this.#forget(batch);
    for (const event of events) {
      if (event.phase === "done") continue;
      if (failure !== "unclear") event.open--;
      if (failure === "part") troubleOf(event).doubtful = true;
      if (!current) continue;
      event.phase = event.open === 0 ? "queued" : "waiting";
      event.dueAt = now;
    }
    this.#end(batch);
    if (!current) return;
    this.#pausedUntil = now + Math.min(shortestPauseMs * 2 ** this.#setbacks, longestPauseMs);
    this.#setbacks++;
  }

  /**
   * The server has just stored a line's head, or knows that it did: with that id known, what was given up is refused
   * as a whole should it still come. What is stored of it is stored by now, and each event's own answer settles it.
   */
  headStored({ line, uniqueId }: P, duplicate: boolean): void {
    if (this.#givenUp.size === 0 || line === undefined) return;
    // A caller's id may have been stored long ago, and be forgotten before the batch arrives.
    if (duplicate && !uniqueId) return;
    const batch = this.#givenUp.get(line);
    if (batch === undefined || batch.spent) return;
    batch.spent = true;
    for (const event of batch.events) {
      if (event.phase === "done") continue;
      event.open--;
      troubleOf(event).doubtful = true;
    }
  }

  /** An event has left the queue. */
  left(event: P): void {
    if (this.#givenUp.size === 0 || event.line === undefined) return;
    const batch = this.#givenUp.get(event.line);
    if (batch !== undefined && last(batch.events) === event) this.#forget(batch);
  }

  #end(batch: PublishBatch<P>): void {
    if (!batch.current) return;
    batch.line.batch = undefined;
    this.#current--;
  }

  #forget(batch: PublishBatch<P>): void {
    this.#byToken.delete(batch.token);
    if (this.#givenUp.get(batch.line) === batch) this.#givenUp.delete(batch.line);
  }
}

function last<P>(events: readonly P[]): P {
  return events[events.length - 1] as P;
}
