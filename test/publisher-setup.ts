import { type CreateLanes, type Lanes, type LanesOptions, openLanes } from "@lanekeeper/core";
import { jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import { readStoredEvents } from "./harness/stored-events.js";

/** Lanes on a connection of their own; disposing closes both. */
export interface OpenedLanes extends AsyncDisposable {
  readonly lanes: Lanes<Record<string, unknown>>;
  readonly connection: NatsConnection;
  readonly stream: string;
  /** Every stored event as `<key>/<type>`, in stream order. */
  stored(): Promise<string[]>;
  updateStream(change: Partial<StreamConfig>): Promise<void>;
}

export const STREAM = "ORDERS";

export async function openTestLanes(
  servers: string | string[],
  options: Omit<LanesOptions, "stream" | "create"> & {
    stream?: string;
    create?: Partial<CreateLanes>;
    connect?: NodeConnectionOptions;
  } = {},
): Promise<OpenedLanes> {
  const { stream = STREAM, create, connect: connectOptions, ...rest } = options;
  const connection = await connect({
    servers,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    ...connectOptions,
  });
  try {
    const lanes = await openLanes(connection, {
      stream,
      create: { subject: "orders", lanes: 8, ...create },
      ...rest,
    });
    const manager = await jetstreamManager(connection, { checkAPI: false });
    return {
      lanes,
      connection,
      stream,
      async stored() {
        const events = await readStoredEvents(connection, stream, lanes.layout);
        return events.map(({ key, type }) => `${key}/${type}`);
      },
      async updateStream(change) {
        await manager.streams.update(stream, change);
      },
      async [Symbol.asyncDispose]() {
        try {
          await lanes.close();
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

/** How a promise ended: its value, or the code of its error. */
export async function outcomeOf<T>(work: Promise<T>): Promise<T | string> {
  try {
    return await work;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
