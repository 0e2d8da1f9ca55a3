import type { Delivery } from "./lane-feed-port.js";
import type { EventHold } from "./lane-policy.js";

export type AnswerKind = "ack" | "drop" | "release";

/** What sends answers for a lane, or keeps them back. */
export interface AnswerDesk {
  send(answer: Answer, now: number, wall: number): void;
}

/** An answer to a delivery, to be sent as long as the event is ours. */
export class Answer {
  readonly kind: AnswerKind;
  readonly delivery: Delivery;
  readonly hold: EventHold;
  /** The lane's count of resets when the answer was given: it is not sent after another one. */
  readonly round: number;
  /** Of a release: after how many milliseconds the event is to come again. */
  readonly delayMs: number;
  /** Of a drop. */
  readonly reason: string;
  readonly #desk: AnswerDesk;

  constructor(
    desk: AnswerDesk,
    kind: AnswerKind,
    { delivery, hold }: { readonly delivery: Delivery; readonly hold: EventHold },
    round: number,
    delayMs: number,
    reason: string,
  ) {
    this.#desk = desk;
    this.kind = kind;
    this.delivery = delivery;
    this.hold = hold;
    this.round = round;
    this.delayMs = delayMs;
    this.reason = reason;
  }

  /** Sends it, unless the hold has lapsed or the lane was reset since (O6). The times are of now. */
  send(now: number, wall: number): void {
    this.#desk.send(this, now, wall);
  }
}
