import { laneRoot } from "@lanekeeper/partitioner";
import { jetstream } from "@nats-io/jetstream";
import type { BenchData } from "../workload/bench-event.js";
import { consumerName, startPlainReader } from "./plain-consumer.js";
import type { Reader } from "./reader.js";

/** The first idiom of the client's documentation: one consumer, `for await`, ack. No two events at once, so no order to lose. */
export const forAwaitReader: Reader = {
  name: "for await + ack, unordered idiom",
  start(stream, handle) {
    const durable = consumerName();
    const filter = `${laneRoot(stream.layout)}.>`;
    return startPlainReader(stream, [{ durable, filter }], async (connection) => {
      const consumer = await jetstream(connection).consumers.get(stream.name, durable);
      const messages = await consumer.consume();
      const loop = async () => {
        for await (const message of messages) {
          const result = handle(message.json<BenchData>());
          if (result !== undefined) await result;
          message.ack();
        }
      };
      return { messages: [messages], ended: loop() };
    });
  },
};
