import {
  AckPolicy,
  type ConsumerMessages,
  type JetStreamManager,
  jetstreamManager,
} from "@nats-io/jetstream";
import { connect, type NatsConnection, nanos } from "@nats-io/transport-node";
import type { BenchStream } from "../workload/bench-stream.js";
import type { RunningReader } from "./reader.js";

/** A durable consumer of NATS, as somebody without Lanekeeper would make it; the server's defaults otherwise. */
export interface PlainConsumer {
  readonly durable: string;
  readonly filter: string;
  readonly maxAckPending?: number;
  readonly ackWaitMs?: number;
}

let readers = 0;

/** A new name for a consumer, unique in this process. */
export function consumerName(): string {
  return `plain-${++readers}`;
}

export async function addConsumers(
  manager: JetStreamManager,
  stream: string,
  consumers: readonly PlainConsumer[],
): Promise<void> {
  await Promise.all(
    consumers.map(({ durable, filter, maxAckPending, ackWaitMs }) =>
      manager.consumers.add(stream, {
        durable_name: durable,
        ack_policy: AckPolicy.Explicit,
        filter_subject: filter,
        ...(maxAckPending === undefined ? {} : { max_ack_pending: maxAckPending }),
        ...(ackWaitMs === undefined ? {} : { ack_wait: nanos(ackWaitMs) }),
      }),
    ),
  );
}

/**
 * Makes consumers on a connection of their own and has `consume` read them.
 *
 * `consume` returns what it opened and, for loops, a promise that settles when the loops have ended.
 */
export async function startPlainReader(
  stream: BenchStream,
  consumers: readonly PlainConsumer[],
  consume: (
    connection: NatsConnection,
  ) => Promise<{ messages: readonly ConsumerMessages[]; ended: Promise<unknown> }>,
): Promise<RunningReader> {
  const connection = await connect({ servers: [...stream.server.urls] });
  try {
    const manager = await jetstreamManager(connection);
    await addConsumers(manager, stream.name, consumers);
    const { messages, ended } = await consume(connection);
    return {
      async stop() {
        try {
          await Promise.all(messages.map((one) => one.close()));
          await ended;
          await connection.flush();
          return { unsettled: await removeConsumers(manager, stream.name, consumers) };
        } finally {
          await connection.close();
        }
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Deletes the consumers and returns how many events they had not seen acked. */
export async function removeConsumers(
  manager: JetStreamManager,
  stream: string,
  consumers: readonly PlainConsumer[],
): Promise<number> {
  const unsettled = await Promise.all(
    consumers.map(async ({ durable }) => {
      const info = await manager.consumers.info(stream, durable);
      await manager.consumers.delete(stream, durable);
      return info.num_pending + info.num_ack_pending;
    }),
  );
  return unsettled.reduce((sum, count) => sum + count, 0);
}
