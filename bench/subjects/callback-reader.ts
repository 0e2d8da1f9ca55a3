import { laneRoot } from "@lanekeeper/partitioner";
import { jetstream } from "@nats-io/jetstream";
import type { BenchData } from "../workload/bench-event.js";
import { consumerName, startPlainReader } from "./plain-consumer.js";
import type { Reader } from "./reader.js";

/** The client's fastest way: one consumer, a synchronous callback that acks. For handlers that do not wait. */
export const callbackReader: Reader = {
  name: "callback + ack, unordered idiom",
  start(stream, handle) {
    const durable = consumerName();
    const filter = `${laneRoot(stream.layout)}.>`;
    return startPlainReader(stream, [{ durable, filter }], async (connection) => {
      const consumer = await jetstream(connection).consumers.get(stream.name, durable);
      const messages = await consumer.consume({
        callback: (message) => {
          // What waits would need a queue of its own here: this idiom is only run with handlers that do not.
          void handle(message.json<BenchData>());
          message.ack();
        },
      });
      return { messages: [messages], ended: Promise.resolve() };
    });
  },
};
