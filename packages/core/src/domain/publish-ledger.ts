import type { LanekeeperError } from "./lanekeeper-error.js";
import type { PublishBatches } from "./publish-batches.js";
import type { PublishBuffer } from "./publish-buffer.js";
import type { PublishEffects } from "./publish-effects.js";
import type { KeyLine, PendingPublish } from "./publish-pending.js";
import { asKnown, perhapsStored, publishTimeout } from "./publish-timeout.js";

/** Which attempts may still be answered, and which callers were told what: each is told once. */
export class PublishLedger<P extends PendingPublish> {
  readonly #buffer: PublishBuffer<P>;
  readonly #batches: PublishBatches<P>;
  readonly #effects: PublishEffects<P>;
  readonly #attempts = new Map<number, P>();

  constructor(buffer: PublishBuffer<P>, batches: PublishBatches<P>, effects: PublishEffects<P>) {
    this.#buffer = buffer;
    this.#batches = batches;
    this.#effects = effects;
  }

  /** The event whose attempt this is; undefined when no answer to it matters any more. */
  attempt(token: number): P | undefined {
    return this.#attempts.get(token);
  }

  openAttempt(token: number, publish: P): void {
    this.#attempts.set(token, publish);
  }

  /** An answer to this attempt came: no other will. */
  closeAttempt(token: number): P | undefined {
    const publish = this.#attempts.get(token);
    if (publish !== undefined) this.#attempts.delete(token);
    return publish;
  }

  stored(publish: P, seq: number, duplicate: boolean): void {
    if (publish.told) return;
    publish.told = true;
    this.#effects.resolve(publish, seq, duplicate);
  }

  failed(publish: P, error: LanekeeperError): void {
    if (publish.told) return;
    publish.told = true;
    this.#effects.reject(publish, error);
  }

  /** Tells the callers of all events of a line that may be stored. */
  perhaps(line: KeyLine<P>, error: LanekeeperError): void {
    for (let one: P | undefined = line.head; one !== undefined; one = one.next) {
      if (one.open > 0 && !one.told) this.failed(one, perhapsStored(error));
    }
  }

  /** Tells the callers of a line's events that their time is over, but for the head; what was not sent leaves. */
  tooLate(line: KeyLine<P>, now: number): void {
    this.#rejectBehind(line, (late) => (now >= late.deadlineAt ? publishTimeout(late) : undefined));
    for (let one = line.head.next; one !== undefined && now >= one.deadlineAt; one = one.next) {
      if (!one.told) this.failed(one, publishTimeout(one));
    }
  }

  /** Rejects everything that is certainly not stored. */
  rejectUnsent(error: LanekeeperError): void {
    for (const line of this.#buffer.lines()) {
      this.#rejectBehind(line, (one) => asKnown(one, error));
      const { head } = line;
      if (head.open > 0) continue;
      this.failed(head, asKnown(head, error));
      this.drop(head);
    }
  }

  /** Rejects everything. */
  rejectAll(error: LanekeeperError): void {
    for (const line of this.#buffer.lines()) {
      this.#rejectBehind(line, (one) => asKnown(one, error));
      for (let one: P | undefined = line.head; one !== undefined; one = this.drop(one)) {
        this.failed(one, asKnown(one, error));
      }
    }
  }

  /** Takes a head out; returns the new one. */
  drop(head: P): P | undefined {
    const { line, trouble } = head;
    this.#attempts.delete(head.token);
    if (trouble !== undefined) for (const token of trouble.olderTokens) this.#attempts.delete(token);
    this.#batches.left(head);
    return line === undefined ? undefined : this.#buffer.dropHead(line);
  }

  /** Rejects what was not sent behind a head, from the front on, as long as there is a reason to. */
  #rejectBehind(line: KeyLine<P>, reason: (publish: P) => LanekeeperError | undefined): void {
    let before = line.head;
    for (let { next } = before; next !== undefined; next = next.next) {
      if (next.open > 0) {
        before = next;
        continue;
      }
      const error = reason(next);
      if (error === undefined) return;
      this.#batches.left(next);
      this.#buffer.dropAfter(line, before, next);
      this.failed(next, error);
    }
  }
}
