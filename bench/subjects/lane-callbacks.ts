import { jetstream } from "@nats-io/jetstream";
import type { BenchData } from "../workload/bench-event.js";
import { recipeConsumers } from "./lane-recipe.js";
import { consumerName, startPlainReader } from "./plain-consumer.js";
import type { Reader } from "./reader.js";

/**
 * A durable consumer for each lane of the stream, read by a synchronous callback that acks: what so many consumers
 * cost by themselves, with as many events in flight as Lanekeeper has. It keeps no order once anything fails.
 */
export function laneCallbacks(lanes: number, maxAckPending: number): Reader {
  return {
    name: `callback + ack, ${lanes} consumers with MaxAckPending ${maxAckPending}, unordered`,
    start(stream, handle) {
      const consumers = recipeConsumers(stream, consumerName(), maxAckPending);
      return startPlainReader(stream, consumers, async (connection) => {
        const { consumers: get } = jetstream(connection);
        const messages = await Promise.all(
          consumers.map(async ({ durable }) =>
            (await get.get(stream.name, durable)).consume({
              callback: (message) => {
                // As in the idiom with one consumer: only for handlers that do not wait.
                void handle(message.json<BenchData>());
                message.ack();
              },
            }),
          ),
        );
        return { messages, ended: Promise.resolve() };
      });
    },
  };
}
