import type { LanekeeperError } from "./lanekeeper-error.js";
import { type BatchFailure, PublishBatches } from "./publish-batches.js";
import { PublishBuffer } from "./publish-buffer.js";
import type { PublishEffects, PublishLimits } from "./publish-effects.js";
import { PublishGate } from "./publish-gate.js";
import { PublishLedger } from "./publish-ledger.js";
import { type KeyLine, type PendingPublish, type PublishBatch, troubleOf } from "./publish-pending.js";
import type { PublishRefusal } from "./publish-refusal.js";
import type { EventSight, StreamSight } from "./publish-sight.js";
import { asKnown, publishTimeout } from "./publish-timeout.js";
import { PublishWait, resendSpan } from "./publish-wait.js";

/**
 * P1 as a state machine: which event is sent when, and what its caller is told. No I/O, clock or randomness; `now` is
 * monotonic, in whole milliseconds.
 *
 * The rules that make P1 hold:
 * - Only the front of a key's line is ever on its way: its first event, or its first events as one atomic batch. The
 *   next waits until they have left.
 * - An event leaves when the server says that it is stored, or when *every* attempt is known to have come to nothing.
 *   A refusal while another attempt is open settles nothing: the open one may be sitting in a frozen server.
 * - An unknown outcome is settled by sending the same id again, also after the caller was told PUBLISH_TIMEOUT, but
 *   never past the duplicate window. Past it the stream is read before the key goes on.
 * - A batch whose outcome is unknown is an open attempt of each of its events, which go on one by one, the first of
 *   them first. The server refuses a late batch as a whole as soon as one of its ids is stored (ADR 0012).
 */
export class PublishQueue<P extends PendingPublish> {
  readonly #limits: PublishLimits;
  readonly #effects: PublishEffects<P>;
  readonly #wait: PublishWait;
  readonly #buffer: PublishBuffer<P>;
  readonly #batches = new PublishBatches<P>();
  readonly #ledger: PublishLedger<P>;
  /** Events that met no responder and wait for a look at the stream. */
  readonly #unheard = new Set<P>();
  #lastToken = 0;
  readonly #gate: PublishGate;
  #pinging = false;
  /** Whatever was written before this time was read by the server. */
  #readUpTo = Number.NEGATIVE_INFINITY;

  constructor(limits: PublishLimits, effects: PublishEffects<P>, connected: boolean) {
    this.#limits = limits;
    this.#effects = effects;
    this.#wait = new PublishWait(limits.timeoutMs);
    this.#buffer = new PublishBuffer(limits);
    this.#ledger = new PublishLedger(this.#buffer, this.#batches, effects);
    this.#gate = new PublishGate(connected);
  }

  /** Events in the buffer, those included whose caller was told of a timeout and whose outcome is still open. */
  get count(): number {
    return this.#buffer.count;
  }

  /** How much room who waits for it is to find at least. */
  get enoughRoom(): number {
    return this.#buffer.enoughRoom;
  }

  /** How many more events are worth having here. */
  get usefulRoom(): number {
    return this.#buffer.usefulRoom(this.#wait.far);
  }

  /** The event an answer is about; undefined when its outcome is known already, or it is about a batch. */
  eventOf(token: number): P | undefined {
    return this.#ledger.attempt(token);
  }

  /** The batch an answer is about; undefined when its outcome is known already, or it is about a single event. */
  batchOf(token: number): PublishBatch<P> | undefined {
    return this.#batches.get(token);
  }

  /** From how many events for each key on a run may go out as an atomic batch; undefined: none may. */
  allowBatches(leastPerKey: number | undefined): void {
    this.#batches.allow(leastPerKey);
  }

  /** Takes an event, or says why not; then nothing was queued. */
  accept(publish: P, now: number): LanekeeperError | undefined {
    const fault = this.#gate.refusing ?? this.#gate.fault ?? this.#buffer.overflow(publish);
    if (fault !== undefined) return fault;
    if (this.#buffer.push(publish) && this.#gate.open) this.#advance(publish, now);
    return undefined;
  }

  /** The server stored the event of this attempt, now or earlier. False: there is no such attempt (any more). */
  stored(token: number, seq: number, duplicate: boolean, now: number): boolean {
    const publish = this.#ledger.attempt(token);
    if (publish === undefined) return false;
    if (publish.attempts === 1) this.#wait.answered(now - publish.sentAt);
    else this.#batches.headStored(publish, duplicate);
    this.#resolve(publish, seq, duplicate, now);
    return true;
  }

  /** The server stored this batch: its events have the sequences up to `lastSeq`, without a gap. */
  batchStored(token: number, lastSeq: number, now: number): void {
    const batch = this.#batches.get(token);
    if (batch === undefined) return;
    this.#batches.stored(batch);
    const { line, events } = batch;
    let seq = lastSeq - events.length;
    for (const event of events) {
      seq++;
      if (event.phase === "done") continue;
      this.#ledger.stored(event, seq, false);
      this.#ledger.drop(event);
    }
    if (line.length > 0) this.#go(line, now);
  }

  /**
   * This batch was not stored, or that is unknown: its events go out one by one.
   *
   * @param distrust the answer was none that a server gives to batches: send no more of them
   */
  batchFailed(token: number, failure: BatchFailure, now: number, distrust = false): void {
    const batch = this.#batches.get(token);
    if (distrust) this.#batches.distrust();
    if (batch !== undefined) this.#giveUp(batch, failure, now);
  }

  /** The server answered this attempt with an error. */
  refused(token: number, refusal: PublishRefusal, now: number): void {
    const publish = this.#ledger.closeAttempt(token);
    if (publish === undefined) return;
    const trouble = troubleOf(publish);
    trouble.fault = refusal.error;
    trouble.unheard = 0;
    if (refusal.type !== "unclear") publish.open--;
    if (refusal.error.code === "WRONG_LAST_SEQUENCE") {
      // The server may compare sequences before it looks for duplicates, so a retry of a stored event lands here, too.
      if (publish.phase !== "event-look") this.#lookForEvent(publish);
    } else if (publish.open === 0 && (refusal.type === "refused" || publish.told)) {
      this.#reject(publish, asKnown(publish, refusal.error), now);
    } else if (token === publish.token) {
      this.#setBack(publish, now);
    }
  }

  /** Nobody listens on the subject this attempt was sent to. */
  noResponders(token: number, now: number): void {
    // The commit of a batch reached nobody. Whether somebody is there again is found out with its first event.
    this.batchFailed(token, "none", now);
    const publish = this.#ledger.closeAttempt(token);
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
  streamSeen(sight: StreamSight<P>, now: number): void {
    const waiting = [...this.#unheard].filter(({ phase }) => phase === "stream-look");
    this.#unheard.clear();
    for (const publish of waiting) {
      if (sight.type === "missing") {
        // With the stream, whatever an open attempt may have stored is gone.
        this.#reject(publish, sight.error(publish), now);
        continue;
      }
      const trouble = troubleOf(publish);
      trouble.unheard = sight.type === "ok" ? trouble.unheard + 1 : 0;
      if (sight.type === "unreadable") trouble.fault = sight.error;
      const verdict = sight.type === "ok" && trouble.unheard >= unheardLimit ? sight.unheard : undefined;
      if (publish.open === 0 && (verdict !== undefined || publish.told)) {
        const error = verdict === undefined ? publishTimeout(publish) : asKnown(publish, verdict(publish));
        this.#reject(publish, error, now);
      } else this.#setBack(publish, now);
    }
  }

  /** What the search for the event found. */
  eventSeen(publish: P, sight: EventSight, now: number): void {
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
      this.#reject(publish, publish.trouble?.fault ?? publishTimeout(publish), now);
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
    this.#gate.connected = false;
  }

  /** Whatever was in flight is sent again at once: whether it arrived is unknown. */
  reconnected(now: number): void {
    this.#gate.connected = true;
    this.#pinging = false;
    for (const { head, batch } of this.#buffer.lines()) {
      if (batch !== undefined) this.#batches.failed(batch, "unclear", now);
      else if (head.phase === "sent") {
        head.phase = "waiting";
        head.dueAt = now;
      }
    }
    this.#walk(now);
  }

  /** While held, events are taken but not sent. */
  hold(): void {
    this.#gate.held = true;
  }

  release(now: number): void {
    this.#gate.held = false;
    this.#walk(now);
  }

  /**
   * The stream or the mapping is not what this publisher works by (O8), or is again (undefined). While at fault
   * nothing is taken or sent; what was never stored for certain is rejected, what may have been waits for its answer.
   */
  setFault(fault: LanekeeperError | undefined, now: number): void {
    this.#gate.fault = fault;
    if (fault === undefined) this.#walk(now);
    else this.#ledger.rejectUnsent(fault);
  }

  get fault(): LanekeeperError | undefined {
    return this.#gate.fault;
  }

  /** The server denied this connection the subject: attempts for which `matches` were not stored. */
  denied(matches: (publish: P) => boolean, error: LanekeeperError, now: number): void {
    for (const { head, batch } of this.#buffer.lines()) {
      // A batch that lacks one of its events is not stored.
      if (batch?.events.some(matches)) this.#giveUp(batch, "none", now);
      else if (head.phase === "sent" && matches(head)) {
        this.refused(head.token, { type: "refused", error }, now);
      }
    }
  }

  /** Time passed: deadlines, overdue answers, retries. */
  tick(now: number): void {
    for (const line of this.#buffer.lines()) {
      this.#ledger.tooLate(line, now);
      const { head } = line;
      if (head.told || now < head.deadlineAt) continue;
      // What is known not to be stored leaves; the rest stays until the outcome is known (P1).
      if (head.open === 0 && head.phase !== "event-look") this.#reject(head, publishTimeout(head), now);
      else this.#ledger.failed(head, publishTimeout(head));
    }
    this.#walk(now);
  }

  /** Takes nothing more; what is pending goes on. */
  refuse(error: LanekeeperError): void {
    this.#gate.refusing ??= error;
  }

  /** Takes nothing more, and rejects all that is pending. */
  close(error: LanekeeperError): void {
    if (this.#gate.closed) return;
    this.#gate.closed = true;
    this.#gate.refusing ??= error;
    this.#ledger.rejectAll(error);
  }

  /** Sends what is due, asks for a round trip where an answer is overdue, and looks where the window is over. */
  #walk(now: number): void {
    let overdue = false;
    for (const line of this.#buffer.lines()) {
      if (line.batch !== undefined) overdue = this.#checkBatch(line.batch, now) || overdue;
      else overdue = this.#go(line, now) || overdue;
    }
    if (overdue && this.#gate.connected && !this.#pinging && !this.#gate.closed) {
      this.#pinging = true;
      this.#effects.ping();
    }
  }

  /** Does what is due for a line's head. True: its answer is overdue, and whether the server read it is not known. */
  #go(line: KeyLine<P>, now: number): boolean {
    const { head } = line;
    const { phase } = head;
    if (phase !== "queued" && phase !== "waiting" && phase !== "sent") return false;
    if (head.told && head.open === 0) {
      // Its caller was told that it may be stored; by now it is known not to be.
      this.#leave(head, now);
      return false;
    }
    if (phase !== "queued") return now >= head.dueAt && this.#resend(line, now);
    if (this.#gate.open) this.#start(line, now);
    return false;
  }

  /** True: the server has not been seen to read the last attempt yet, so another would only queue behind it. */
  #resend(line: KeyLine<P>, now: number): boolean {
    const { head } = line;
    if (this.#gate.fault !== undefined) this.#ledger.perhaps(line, this.#gate.fault);
    if (head.open > 0 && now >= head.openSince + resendSpan(this.#limits.duplicateWindowMs)) {
      if (head.told && now >= head.openSince + this.#limits.duplicateWindowMs && this.#gate.connected) {
        this.#lookForEvent(head);
      }
      return false;
    }
    if (!this.#gate.open) return false;
    if (head.phase === "sent" && head.sentAt >= this.#readUpTo) return true;
    this.#advance(head, now);
    return false;
  }

  /** As {@link #resend}, for a batch: it is given up once the server has read it and does not answer. */
  #checkBatch(batch: PublishBatch<P>, now: number): boolean {
    if (now < batch.dueAt) return false;
    if (this.#gate.fault !== undefined) this.#ledger.perhaps(batch.line, this.#gate.fault);
    if (!this.#gate.open) return false;
    if (batch.sentAt >= this.#readUpTo) return true;
    this.#giveUp(batch, "unclear", now);
    return false;
  }

  #giveUp(batch: PublishBatch<P>, failure: BatchFailure, now: number): void {
    const { line, current } = batch;
    this.#batches.failed(batch, failure, now);
    if (current) this.#go(line, now);
  }

  /** Sends a line's head for the first time, alone or with what follows it. */
  #start(line: KeyLine<P>, now: number): void {
    const run = this.#batches.runOf(line, this.#buffer.keys, now);
    if (run === undefined) {
      this.#advance(line.head, now);
      return;
    }
    const token = ++this.#lastToken;
    this.#batches.send(line, run, token, now, now + this.#wait.forAnswer(1));
    this.#effects.sendBatch(run, token);
  }

  #advance(publish: P, now: number): void {
    const token = ++this.#lastToken;
    if (publish.open === 0) publish.openSince = now;
    else troubleOf(publish).olderTokens.push(publish.token);
    publish.open++;
    publish.attempts++;
    publish.token = token;
    publish.phase = "sent";
    publish.sentAt = now;
    publish.dueAt = now + this.#wait.forAnswer(publish.attempts);
    this.#ledger.openAttempt(token, publish);
    this.#effects.send(publish, token);
  }

  #setBack(publish: P, now: number): void {
    publish.phase = "waiting";
    publish.dueAt = now + this.#wait.afterSetback(++troubleOf(publish).setbacks);
  }

  #lookForEvent(publish: P): void {
    publish.phase = "event-look";
    this.#effects.lookForEvent(publish);
  }

  #resolve(publish: P, seq: number, duplicate: boolean, now: number): void {
    this.#ledger.stored(publish, seq, duplicate);
    this.#leave(publish, now);
  }

  #reject(publish: P, error: LanekeeperError, now: number): void {
    this.#ledger.failed(publish, error);
    this.#leave(publish, now);
  }

  /** The head is settled; the key's next event goes out. */
  #leave(head: P, now: number): void {
    const { line } = head;
    if (this.#ledger.drop(head) !== undefined && line !== undefined) this.#go(line, now);
  }
}

/** Looks at a sound stream before publishes that nobody hears are put down to the server's mapping. */
const unheardLimit = 3;
