import { laneRoot } from "@lanekeeper/partitioner";
import { jetstream } from "@nats-io/jetstream";
import type { BenchData } from "../workload/bench-event.js";
import { consumerName, startPlainReader } from "./plain-consumer.js";
import type { Reader } from "./reader.js";

/**
 * One consumer whose callback acks at once and appends the event to its key's chain of promises: each key as fast as
 * this process can run its handlers one after the other. What is in the chains when it ends is lost.
 */
export const chainedReader: Reader = {
  name: "chains in memory, acked before they are handled",
  start(stream, handle) {
    const durable = consumerName();
    const filter = `${laneRoot(stream.layout)}.>`;
    return startPlainReader(stream, [{ durable, filter }], async (connection) => {
      const tails = new Map<number, Promise<void>>();
      const consumer = await jetstream(connection).consumers.get(stream.name, durable);
      const messages = await consumer.consume({
        callback: (message) => {
          const data = message.json<BenchData>();
          const tail = (tails.get(data.k) ?? Promise.resolve()).then(() => handle(data));
          tails.set(data.k, tail);
          message.ack();
        },
      });
      return { messages: [messages], ended: Promise.resolve() };
    });
  },
};
