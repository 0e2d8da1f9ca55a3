import type { Delivery } from "./lane-feed-port.js";
import type { EventHold } from "./lane-policy.js";

/** An answer to a delivery, to be sent as long as the event is ours. */
export interface Answer {
  readonly delivery: Delivery;
  readonly hold: EventHold;
  /** Sends it, unless the hold has lapsed or the lane was reset since (O6). */
  send(): void;
}
