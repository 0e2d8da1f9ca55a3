import { type LaneLayout, parseLaneSubject } from "@lanekeeper/partitioner";
import { type JsMsg, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { type Delivery, placeOf } from "./delivery.js";
import type { DeliveryHandler } from "./delivery-handler.js";

/** Ends the work: takes no more events, finishes those in hand. */
export type StopWork = () => Promise<void>;

export interface BaselineOptions {
  readonly stream: string;
  /** The durable consumer that all workers share; its MaxAckPending bounds the events in flight. */
  readonly consumer: string;
  readonly layout: LaneLayout;
  /** Called once for an event that could not be handled. */
  readonly onError: (error: unknown) => void;
}

/** Plain JetStream: every event the consumer delivers is handled at once and acked when it is done. */
export async function baselineWork(
  connection: NatsConnection,
  options: BaselineOptions,
  handle: DeliveryHandler,
): Promise<StopWork> {
  const consumer = await jetstream(connection).consumers.get(options.stream, options.consumer);
  const { created } = await consumer.info();
  const inHand = new Set<Promise<void>>();
  const messages = await consumer.consume({
    callback: (message) => {
      const handling = handle(deliveryOf(message, options.layout), created)
        .then(() => message.ack(), options.onError)
        .finally(() => inHand.delete(handling));
      inHand.add(handling);
    },
  });
  return async () => {
    await messages.close();
    await Promise.all(inHand);
  };
}

function deliveryOf(message: JsMsg, layout: LaneLayout): Delivery {
  const { key, type } = parseLaneSubject(layout, message.subject);
  return {
    key,
    type,
    data: message.json(),
    seq: message.seq,
    place: placeOf((name) => message.headers?.get(name) ?? ""),
  };
}
