import type { LaneRouter } from "@lanekeeper/partitioner";
import type { Handler } from "../domain/event.js";
import type { SlotQueue } from "../domain/slot-queue.js";
import type { ResolvedWorkerOptions } from "../domain/worker-options.js";
import type { Answer } from "./answer.js";
import type { Clock } from "./clock.js";
import type { LaneFeed } from "./lane-feed-port.js";
import type { Notify } from "./notifier.js";

/** Something that calls a handler. */
export interface Turn {
  /** `later`: not while it was asked for, so that what was looked at then has to be looked at again. */
  take(later: boolean): void;
}

/** What a lane shares with the other lanes of its worker. */
export interface LaneHost {
  readonly router: LaneRouter;
  readonly options: ResolvedWorkerOptions;
  readonly handler: Handler<Record<string, unknown>>;
  readonly clock: Clock;
  readonly feed: LaneFeed;
  readonly slots: SlotQueue;
  readonly notify: Notify;
  readonly random: () => number;
  incarnation(): string;
  /**
   * Sends the answer with others: `urgent`, because the lane gets no more events without it, at the end of this turn of the
   * event loop, otherwise within a few milliseconds.
   */
  sendSoon(answer: Answer, urgent: boolean): void;
  /** Sends at once what is still to be sent. */
  sendAnswers(): void;
  /** Has the turn taken when no other is under way: what ends at once must not nest thousands deep. */
  inTurn(turn: Turn): void;
  /**
   * A hold was found to have lapsed, as after a freeze: all others are looked at in this turn of the event loop, so that the
   * signals of handlers are aborted without waiting for the next tick (O6).
   */
  lookSoon(): void;
}
