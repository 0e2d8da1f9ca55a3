import type { LanekeeperError } from "./lanekeeper-error.js";
import { PublishBuffer, type PublishBufferLimits } from "./publish-buffer.js";
import { PendingPublish, type PublishJob } from "./publish-pending.js";
import type { PublishRefusal } from "./publish-refusal.js";
import type { EventSight, StreamSight } from "./publish-sight.js";
import { perhapsStored, publishTimeout } from "./publish-timeout.js";
import { PublishWait, resendSpan } from "./publish-wait.js";

/** What the queue has done in the world. None of these may call back into the queue before it returns. */
export interface PublishEffects<J extends PublishJob> {
  /** Writes an attempt to the connection, after all those before. */
  send(job: J, token: number): void;
  resolve(job: J, seq: number, duplicate: boolean): void;
  reject(job: J, error: LanekeeperError): void;
  /** Searches the stream for the event itself; answered by {@link PublishQueue.eventSeen}. */
  lookForEvent(publish: PendingPublish<J>): void;
  /** Looks at the stream's state; answered by {@link PublishQueue.streamSeen}. */
  lookAtStream(): void;
  /** A round trip to the server; answered by {@link PublishQueue.roundTrip}. */
  ping(): void;
}

export interface PublishLimits extends PublishBufferLimits {
  readonly timeoutMs: number;
  readonly duplicateWindowMs: number;
}

/**
 * P1 as a state machine: which event is sent when, and what its caller is told. No I/O, clock or randomness; `now` is
 * monotonic milliseconds.
 *
 * The rules that make P1 hold:
 * - Only the first event of a key is ever sent; the next waits until that one has left.
 * - An event leaves when the server says that it is stored, or when *every* attempt is known to have come to nothing.
 *   A refusal while another attempt is open settles nothing: the open one may be sitting in a frozen server.
 * - An unknown outcome is settled by sending the same id again, also after the caller was told PUBLISH_TIMEOUT, but
 *   never past the duplicate window. Past it the stream is read before the key goes on.
 */
export class PublishQueue<J extends PublishJob> {
  readonly #limits: PublishLimits;
  readonly #effects: PublishEffects<J>;
  readonly #wait: PublishWait;
  readonly #buffer: PublishBuffer<J>;
  /** Attempts that may still be answered, by token. */
  readonly #attempts = new Map<number, PendingPublish<J>>();
  /** Events that met no responder and wait for a look at the stream. */
  readonly #unheard = new Set<PendingPublish<J>>();
  #lastToken = 0;
  #connected: boolean;
  #held = false;
  #fault: LanekeeperError | undefined;
  #refusing: LanekeeperError | undefined;
  #closed = false;
  #pinging = false;
  /** Whatever was written before this time was read by the server. */
  #readUpTo = Number.NEGATIVE_INFINITY;

  constructor(limits: PublishLimits, effects: PublishEffects<J>, connected: boolean) {
    this.#limits = limits;
    this.#effects = effects;
    this.#wait = new PublishWait(limits.timeoutMs);
    this.#buffer = new PublishBuffer(limits);
    this.#connected = connected;
  }

  /** Events in the buffer, those included whose caller was told of a timeout and whose outcome is still open. */
  get count(): number {
    return this.#buffer.count;
  }

  /** How many more events fit. */
  get room(): number {
    return this.#buffer.room;
  }

  /** The event an answer is about; undefined when its outcome is known already. */
  jobOf(token: number): J | undefined {
    return this.#attempts.get(token)?.job;
  }

  /** Takes an event, or says why not; then nothing was queued. */
  accept(job: J, now: number): LanekeeperError | undefined {
    const fault = this.#refusing ?? this.#fault ?? this.#buffer.overflow(job);
    if (fault !== undefined) return fault;
    const publish = new PendingPublish(job, now + this.#limits.timeoutMs);
    const first = this.#buffer.push(publish);
    if (first && this.#open) this.#advance(publish, now);
    return undefined;
  }

  /** The server stored the event of this attempt, now or earlier. */
  stored(token: number, seq: number, duplicate: boolean, now: number): void {
    const publish = this.#attempts.get(token);
    if (publish === undefined) return;
    if (publish.attempts === 1) this.#wait.answered(now - publish.sentAt);
    this.#resolve(publish, seq, duplicate, now);
  }

  /** The server answered this attempt with an error. */
  refused(token: number, refusal: PublishRefusal, now: number): void {
    const publish = this.#closeAttempt(token);
    if (publish === undefined) return;
    publish.fault = refusal.error;
    publish.unheard = 0;
    if (refusal.type !== "unclear") publish.open--;
    if (refusal.error.code === "WRONG_LAST_SEQUENCE") {
      // The server may compare sequences before it looks for duplicates, so a retry of a stored event lands here, too.
      if (publish.phase !== "event-look") this.#lookForEvent(publish);
    } else if (publish.open === 0 && (refusal.type === "refused" || publish.told)) {
      this.#reject(publish, refusal.error, now);
    } else if (token === publish.token) {
      this.#setBack(publish, now);
    }
  }

  /** Nobody listens on the subject this attempt was sent to. */
  noResponders(token: number, now: number): void {
    const publish = this.#closeAttempt(token);
    if (publish === undefined) return;
    publish.open--;
    if (publish.open === 0 && publish.told) this.#leave(publish, now);
    else if (token === publish.token && publish.phase !== "event-look") {
      publish.phase = "stream-look";
      this.#unheard.add(publish);
      this.#effects.lookAtStream();
    }
  }

  /** What the look at the stream found that {@link noResponders} asked for. */
  streamSeen(sight: StreamSight<J>, now: number): void {
    const waiting = [...this.#unheard];
    this.#unheard.clear();
    for (const publish of waiting) {
      if (publish.phase !== "stream-look") continue;
      if (sight.type === "missing") {
        // With the stream, whatever an open attempt may have stored is gone.
        this.#reject(publish, sight.error(publish.job), now);
        continue;
      }
      publish.unheard = sight.type === "ok" ? publish.unheard + 1 : 0;
      if (sight.type === "unreadable") publish.fault = sight.error;
      const verdict = sight.type === "ok" && publish.unheard >= unheardLimit ? sight.unheard : undefined;
      if (publish.open === 0 && (verdict !== undefined || publish.told)) {
        this.#reject(publish, verdict?.(publish.job) ?? publishTimeout(publish), now);
      } else this.#setBack(publish, now);
    }
  }

  /** What the search for the event found. */
  eventSeen(publish: PendingPublish<J>, sight: EventSight, now: number): void {
    if (publish.phase !== "event-look") return;
    if (sight.type === "stored") {
      this.#resolve(publish, sight.seq, true, now);
      return;
    }
    const over = now >= publish.openSince + this.#limits.duplicateWindowMs;
    const readable = sight.type !== "unreadable" || sight.forbidden;
    if (
      sight.type === "superseded" ||
      (publish.open === 0 && (readable || publish.told)) ||
      (publish.told && over && readable)
    ) {
      this.#reject(publish, publish.fault ?? publishTimeout(publish), now);
    } else this.#setBack(publish, now);
  }

  /** The server has read whatever was written before `askedAt`; undefined: the round trip failed. */
  roundTrip(askedAt: number | undefined, now: number): void {
    this.#pinging = false;
    if (askedAt === undefined) return;
    this.#readUpTo = askedAt;
    this.#walk(now);
  }

  /** Nothing is sent while the connection is down: it would sit in the client and come out of order, or too late. */
  disconnected(): void {
    this.#connected = false;
  }

  /** Whatever was in flight is sent again at once: whether it arrived is unknown. */
  reconnected(now: number): void {
    this.#connected = true;
    this.#pinging = false;
    for (const head of this.#buffer.heads()) {
      if (head.phase === "sent") {
        head.phase = "waiting";
        head.dueAt = now;
      }
    }
    this.#walk(now);
  }

  /** While held, events are taken but not sent. */
  hold(): void {
    this.#held = true;
  }

  release(now: number): void {
    this.#held = false;
    this.#walk(now);
  }

  /**
   * The stream or the mapping is not what this publisher works by (O8), or is again (undefined). While at fault
   * nothing is taken or sent; what was never stored for certain is rejected, what may have been waits for its answer.
   */
  setFault(fault: LanekeeperError | undefined, now: number): void {
    this.#fault = fault;
    if (fault === undefined) this.#walk(now);
    else this.#rejectUnsent(fault);
  }

  get fault(): LanekeeperError | undefined {
    return this.#fault;
  }

  /** The server denied this connection the subject: attempts for which `matches` were not stored. */
  denied(matches: (job: J) => boolean, error: LanekeeperError, now: number): void {
    for (const head of this.#buffer.heads()) {
      if (head.phase === "sent" && matches(head.job))
        this.refused(head.token, { type: "refused", error }, now);
    }
  }

  /** Time passed: deadlines, overdue answers, retries. */
  tick(now: number): void {
    for (const head of this.#buffer.heads()) {
      this.#rejectQueued(head, (late) => (now >= late.deadlineAt ? publishTimeout(late) : undefined));
      if (now >= head.deadlineAt && !head.told) this.#timeOut(head, now);
    }
    this.#walk(now);
  }

  /** Takes nothing more; what is pending goes on. */
  refuse(error: LanekeeperError): void {
    this.#refusing ??= error;
  }

  /** Takes nothing more, and rejects all that is pending. */
  close(error: LanekeeperError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#refusing ??= error;
    for (const head of this.#buffer.heads()) {
      this.#rejectQueued(head, () => error);
      this.#tell(head, head.open > 0 ? perhapsStored(error) : error);
      this.#drop(head);
    }
  }

  get #open(): boolean {
    return this.#connected && !this.#held && this.#fault === undefined && !this.#closed;
  }

  /** Sends what is due, asks for a round trip where an answer is overdue, and looks where the window is over. */
  #walk(now: number): void {
    let overdue = false;
    for (const head of this.#buffer.heads()) {
      if (head.phase === "queued") {
        if (this.#open) this.#advance(head, now);
      } else if (now < head.dueAt) continue;
      else if (head.phase === "sent" || head.phase === "waiting") {
        overdue = this.#resend(head, now) || overdue;
      }
    }
    if (overdue && this.#connected && !this.#pinging && !this.#closed) {
      this.#pinging = true;
      this.#effects.ping();
    }
  }

  /** True: the server has not been seen to read the last attempt yet, so another would only queue behind it. */
  #resend(publish: PendingPublish<J>, now: number): boolean {
    if (this.#fault !== undefined && !publish.told) {
      this.#tell(publish, perhapsStored(this.#fault));
    }
    if (publish.open > 0 && now >= publish.openSince + resendSpan(this.#limits.duplicateWindowMs)) {
      if (publish.told && now >= publish.openSince + this.#limits.duplicateWindowMs && this.#connected) {
        this.#lookForEvent(publish);
      }
      return false;
    }
    if (!this.#open) return false;
    if (publish.phase === "sent" && publish.sentAt >= this.#readUpTo) return true;
    this.#advance(publish, now);
    return false;
  }

  #advance(publish: PendingPublish<J>, now: number): void {
    const token = ++this.#lastToken;
    if (publish.open === 0) publish.openSince = now;
    else {
      publish.olderTokens ??= [];
      publish.olderTokens.push(publish.token);
    }
    publish.open++;
    publish.attempts++;
    publish.token = token;
    publish.phase = "sent";
    publish.sentAt = now;
    publish.dueAt = now + this.#wait.forAnswer(publish.attempts);
    this.#attempts.set(token, publish);
    this.#effects.send(publish.job, token);
  }

  #rejectUnsent(fault: LanekeeperError): void {
    for (const head of this.#buffer.heads()) {
      this.#rejectQueued(head, () => fault);
      if (head.open === 0) {
        this.#tell(head, fault);
        this.#drop(head);
      }
    }
  }

  #setBack(publish: PendingPublish<J>, now: number): void {
    publish.phase = "waiting";
    publish.setbacks++;
    publish.dueAt = now + this.#wait.afterSetback(publish.setbacks);
  }

  #lookForEvent(publish: PendingPublish<J>): void {
    publish.phase = "event-look";
    this.#effects.lookForEvent(publish);
  }

  /** Its time is over. What is known not to be stored leaves; the rest stays until the outcome is known (P1). */
  #timeOut(publish: PendingPublish<J>, now: number): void {
    const error = publishTimeout(publish);
    if (publish.open === 0 && publish.phase !== "event-look") this.#reject(publish, error, now);
    else this.#tell(publish, error);
  }

  #resolve(publish: PendingPublish<J>, seq: number, duplicate: boolean, now: number): void {
    if (!publish.told) {
      publish.told = true;
      this.#effects.resolve(publish.job, seq, duplicate);
    }
    this.#leave(publish, now);
  }

  #reject(publish: PendingPublish<J>, error: LanekeeperError, now: number): void {
    this.#tell(publish, error);
    this.#leave(publish, now);
  }

  #tell(publish: PendingPublish<J>, error: LanekeeperError): void {
    if (publish.told) return;
    publish.told = true;
    this.#effects.reject(publish.job, error);
  }

  /** The head is settled; the key's next event goes out. */
  #leave(publish: PendingPublish<J>, now: number): void {
    const next = this.#drop(publish);
    if (next !== undefined && this.#open) this.#advance(next, now);
  }

  /** Takes a head out; returns the new head. */
  #drop(head: PendingPublish<J>): PendingPublish<J> | undefined {
    this.#attempts.delete(head.token);
    if (head.olderTokens !== undefined) {
      for (const token of head.olderTokens) this.#attempts.delete(token);
    }
    return this.#buffer.dropHead(head);
  }

  /** Rejects the events behind a head, from the next one on, as long as there is a reason to. None was ever sent. */
  #rejectQueued(
    head: PendingPublish<J>,
    reason: (publish: PendingPublish<J>) => LanekeeperError | undefined,
  ): void {
    for (let { next } = head; next !== undefined; next = next.next) {
      const error = reason(next);
      if (error === undefined) return;
      this.#buffer.dropNext(head, next);
      this.#tell(next, error);
    }
  }

  /** An answer to this attempt came: no other will. */
  #closeAttempt(token: number): PendingPublish<J> | undefined {
    const publish = this.#attempts.get(token);
    if (publish !== undefined) this.#attempts.delete(token);
    return publish;
  }
}

/** Looks at a sound stream before publishes that nobody hears are put down to the server's mapping. */
const unheardLimit = 3;
