import { laneFilter } from "@lanekeeper/partitioner";
import { type ConsumerMessages, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { BenchData } from "../workload/bench-event.js";
import type { BenchStream } from "../workload/bench-stream.js";
import { consumerName, type PlainConsumer, startPlainReader } from "./plain-consumer.js";
import type { Handle, Reader } from "./reader.js";

/** The hand-written recipe for order: a durable consumer with MaxAckPending 1 for each lane, and a loop that reads it. */
export function laneRecipe(lanes: number): Reader {
  return {
    name: `recipe, ${lanes} lanes with MaxAckPending 1`,
    start(stream, handle) {
      const consumers = recipeConsumers(stream, consumerName());
      return startPlainReader(stream, consumers, (connection) =>
        readLanes(connection, stream.name, consumers, handle),
      );
    },
  };
}

/** One consumer for each lane of the stream; several processes may read the same ones, and the server arbitrates. */
export function recipeConsumers(
  { layout }: Pick<BenchStream, "layout">,
  prefix: string,
  maxAckPending = 1,
): readonly PlainConsumer[] {
  return Array.from({ length: layout.lanes }, (_, lane) => ({
    durable: `${prefix}-${lane}`,
    filter: laneFilter(layout, lane),
    maxAckPending,
  }));
}

/** Reads each consumer in a loop of its own: handle, ack, next. */
export async function readLanes(
  connection: NatsConnection,
  stream: string,
  consumers: readonly PlainConsumer[],
  handle: Handle,
): Promise<{ messages: readonly ConsumerMessages[]; ended: Promise<unknown> }> {
  const { consumers: get } = jetstream(connection);
  const messages = await Promise.all(
    consumers.map(async ({ durable }) => (await get.get(stream, durable)).consume()),
  );
  const loop = async (lane: ConsumerMessages) => {
    for await (const message of lane) {
      const result = handle(message.json<BenchData>());
      if (result !== undefined) await result;
      message.ack();
    }
  };
  return { messages, ended: Promise.all(messages.map(loop)) };
}
