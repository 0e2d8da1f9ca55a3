import type { LaneRouter } from "@lanekeeper/partitioner";
import type { EventMeta } from "../domain/event.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { describeThrown } from "../domain/thrown.js";
import type { Delivery } from "./lane-feed-port.js";

/** An event's description, all but its data. */
export type TypedMeta = EventMeta & { readonly type: string };

/**
 * Reads a delivery by the layout of `router`. `error` is set when the subject is not canonical or its lane is not the one its key
 * hashes to: a foreign publisher stored it, and handling it could break O1. Key and type are empty then.
 */
export function readDelivery(
  router: LaneRouter,
  lane: number,
  delivery: Delivery,
): { meta: TypedMeta; error?: LanekeeperError } {
  const { subject, bytes, headers, seq, deliveries } = delivery;
  const id = headers["Nats-Msg-Id"]?.[0];
  const { generation } = router.layout;
  const storedAt = new Date(Number(delivery.stamp.slice(0, -6)));
  const attempt = deliveries;
  const describe = (key: string, type: string): TypedMeta =>
    id === undefined
      ? { key, type, subject, bytes, headers, lane, generation, seq, storedAt, attempt }
      : { key, type, id, subject, bytes, headers, lane, generation, seq, storedAt, attempt };
  try {
    const { key, type } = router.parse(subject);
    return { meta: describe(key, type) };
  } catch (cause) {
    const text = `event ${seq} on ${subject} came from a publisher that does not follow the layout: ${describeThrown(cause)}`;
    return { meta: describe("", ""), error: new LanekeeperError("MISROUTED", text, { cause }) };
  }
}
