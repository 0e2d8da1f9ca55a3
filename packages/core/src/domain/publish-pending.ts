import type { LanekeeperError } from "./lanekeeper-error.js";

/** What the queue needs to know of an event; the runtime hangs the rest on it. */
export interface PublishJob {
  readonly key: string;
  /** What it takes of the buffer. */
  readonly bytes: number;
}

/**
 * - `queued`: never sent, or every attempt definitely came to nothing.
 * - `sent`: the newest attempt has no answer yet.
 * - `waiting`: it is sent again at `dueAt`.
 * - `stream-look`: an attempt met no responder; the stream is being looked at.
 * - `event-look`: the stream is being searched for the event itself.
 * - `done`: out of the queue.
 */
export type PublishPhase = "queued" | "sent" | "waiting" | "stream-look" | "event-look" | "done";

/** One accepted event on its way; only the head of a key's chain is ever sent (P1). */
export class PendingPublish<J extends PublishJob> {
  readonly job: J;
  readonly deadlineAt: number;
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
  /** Times it was refused for the moment in a row. */
  setbacks = 0;
  /** Times in a row it met no responder although the stream was as it should be. */
  unheard = 0;
  token = 0;
  /** Tokens of earlier attempts that may still be answered. */
  olderTokens: number[] | undefined;
  /** The last refusal, to be told when time is over. */
  fault: LanekeeperError | undefined;
  next: PendingPublish<J> | undefined;
  /** Of a chain's head: the chain's last. */
  tail: PendingPublish<J> = this;

  constructor(job: J, deadlineAt: number) {
    this.job = job;
    this.deadlineAt = deadlineAt;
  }
}
