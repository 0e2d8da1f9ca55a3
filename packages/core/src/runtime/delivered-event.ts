import type { LaneRouter } from "@lanekeeper/partitioner";
import type { EventMeta } from "../domain/event.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { describeThrown } from "../domain/thrown.js";
import type { Delivery } from "./lane-feed-port.js";
import type { EventHold } from "./lane-policy.js";

/** An event's description, all but its data. */
export type TypedMeta = EventMeta & { readonly type: string };

/**
 * An event in a lane's hands, as its newest delivery brought it. Most events of a full lane wait: what a handler is given
 * is made when one starts, so that little is kept for those that do not yet (ADR 13).
 */
export class DeliveredEvent {
  /** Empty when the event is not this lane's. */
  readonly key: string;
  /** Empty when the event is not this lane's. */
  readonly type: string;
  delivery: Delivery;
  hold: EventHold;
  /** Why the event failed last, or is not handled at all. */
  error: LanekeeperError | undefined;

  constructor(
    key: string,
    type: string,
    delivery: Delivery,
    hold: EventHold,
    error: LanekeeperError | undefined,
  ) {
    this.key = key;
    this.type = type;
    this.delivery = delivery;
    this.hold = hold;
    this.error = error;
  }

  /** It is not this lane's: `error` says why. */
  get misrouted(): boolean {
    return this.type === "";
  }

  /** What the handler of a start is told, all but the data; `retries` are those that this worker has made since the delivery. */
  describe(generation: number, lane: number, retries: number): TypedMeta {
    const { key, type } = this;
    const { subject, bytes, headers, seq, deliveries, stamp } = this.delivery;
    const id = headers["Nats-Msg-Id"]?.[0];
    const storedAt = new Date(Number(stamp.slice(0, -6)));
    const attempt = deliveries + retries;
    return id === undefined
      ? { key, type, subject, bytes, headers, lane, generation, seq, storedAt, attempt }
      : { key, type, id, subject, bytes, headers, lane, generation, seq, storedAt, attempt };
  }
}

/**
 * Reads a delivery by the layout of `router`. `error` is set when the subject is not canonical or its lane is not the one its key
 * hashes to: a foreign publisher stored it, and handling it could break O1.
 */
export function readDelivery(router: LaneRouter, delivery: Delivery, hold: EventHold): DeliveredEvent {
  const { subject, seq } = delivery;
  try {
    const { key, type } = router.parse(subject);
    return new DeliveredEvent(key, type, delivery, hold, undefined);
  } catch (cause) {
    const text = `event ${seq} on ${subject} came from a publisher that does not follow the layout: ${describeThrown(cause)}`;
    return new DeliveredEvent("", "", delivery, hold, new LanekeeperError("MISROUTED", text, { cause }));
  }
}
