import type { LanekeeperError } from "./lanekeeper-error.js";

/**
 * - `queued`: nothing of it is on its way, and every attempt so far definitely came to nothing.
 * - `sent`: the newest attempt has no answer yet.
 * - `batched`: the same, as part of an atomic batch.
 * - `waiting`: it is sent again at `dueAt`.
 * - `stream-look`: an attempt met no responder; the stream is being looked at.
 * - `event-look`: the stream is being searched for the event itself.
 * - `done`: out of the queue.
 */
export type PublishPhase = "queued" | "sent" | "batched" | "waiting" | "stream-look" | "event-look" | "done";

/**
 * One accepted event on its way: what the queue needs to know of it. The runtime's own class adds what is sent.
 *
 * Tens of thousands are made a second, so what few events need is in {@link PublishTrouble}, and every number is a
 * whole one: V8 keeps those in place, fractions as objects of their own.
 */
export class PendingPublish {
  readonly key: string;
  /** What it takes of the buffer. */
  readonly bytes: number;
  /** Whether it may go out as part of an atomic batch. */
  readonly batchable: boolean;
  readonly deadlineAt: number;
  /** Whether no other call can have its message id, so that a duplicate of it is one of its own attempts. */
  readonly uniqueId: boolean;
  phase: PublishPhase = "queued";
  /** Whether the caller's promise is settled; an event whose outcome is unknown outlives it. */
  told = false;
  /** Attempts so far. */
  attempts = 0;
  /** Attempts that may have been stored or may still be: unanswered ones, and those whose answer leaves it open. */
  open = 0;
  /** When the first of the open attempts may have been sent; the duplicate window counts from here. */
  openSince = 0;
  sentAt = 0;
  /** When a `sent` one is overdue, a `waiting` one is sent again. */
  dueAt = 0;
  token = 0;
  /** Made when something does not go as it should. */
  trouble: PublishTrouble | undefined = undefined;
  /** The key's next event. */
  next: this | undefined = undefined;
  /** The key's events, as long as this is one of them. */
  line: KeyLine<this> | undefined = undefined;

  /** @param deadlineAt whole milliseconds, as all times here */
  constructor(key: string, bytes: number, batchable: boolean, deadlineAt: number, uniqueId = true) {
    this.key = key;
    this.bytes = bytes;
    this.batchable = batchable;
    this.deadlineAt = deadlineAt;
    this.uniqueId = uniqueId;
  }
}

/** What is remembered of an event whose first attempt was not its last. */
export class PublishTrouble {
  /** Times it was refused for the moment in a row. */
  setbacks = 0;
  /** Times in a row it met no responder although the stream was as it should be. */
  unheard = 0;
  /** Tokens of earlier attempts that may still be answered. */
  readonly olderTokens: number[] = [];
  /** Whether it was in a batch of which a part may be stored, though nothing more of it will be. */
  doubtful = false;
  /** The last refusal, to be told when time is over. */
  fault: LanekeeperError | undefined = undefined;
}

export function troubleOf(publish: PendingPublish): PublishTrouble {
  publish.trouble ??= new PublishTrouble();
  return publish.trouble;
}

/**
 * One key's events in call order. Only what is in front is ever on its way: the head, or the head and what follows it
 * as one atomic batch (P1). Behind the head, events that may be stored come before all that were never sent.
 */
export class KeyLine<P extends PendingPublish> {
  head: P;
  tail: P;
  length = 1;
  /** The batch that the head is on its way in. */
  batch: PublishBatch<P> | undefined = undefined;

  constructor(first: P) {
    this.head = first;
    this.tail = first;
  }
}

/** A run of one key's events, sent as one atomic batch: the server stores all of them or none. */
export class PublishBatch<P extends PendingPublish> {
  readonly line: KeyLine<P>;
  /** In order. Those that have left since are `done`. */
  readonly events: readonly P[];
  readonly token: number;
  readonly sentAt: number;
  /** When its answer is overdue. */
  readonly dueAt: number;
  /** Nothing more of it can be stored; its events do not count it as an open attempt any more. */
  spent = false;

  constructor(line: KeyLine<P>, events: readonly P[], token: number, sentAt: number, dueAt: number) {
    this.line = line;
    this.events = events;
    this.token = token;
    this.sentAt = sentAt;
    this.dueAt = dueAt;
  }

  /** Whether the line waits for its answer; otherwise it was given up, and its events go out one by one. */
  get current(): boolean {
    return this.line.batch === this;
  }
}
