import { type CreateLanes, type LanePublisher, openLanes } from "@lanekeeper/core";
import type { TestServer } from "@lanekeeper/core/testing";
import type { LaneLayout } from "@lanekeeper/partitioner";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { type BenchEvents, EVENT_TYPE, EventMaker } from "./bench-event.js";
import { keyName } from "./key-sequence.js";

/** A stream with lanes on the benchmark's server. */
export interface BenchStream {
  readonly server: TestServer;
  readonly name: string;
  readonly layout: LaneLayout;
  /** What opens it again, with rights to make the claims' bucket. */
  readonly create: CreateLanes;
  /** How many keys its events have; keys are numbered from 0. */
  readonly keys: number;
  /** How many events it holds. */
  readonly messages: number;
}

let streams = 0;

/**
 * Makes a file stream of its own with `lanes` lanes and stores one event for each entry of `sequence`,
 * none without it.
 *
 * @throws when not all of them were stored.
 */
export async function makeStream(
  server: TestServer,
  options: {
    lanes: number;
    keys: number;
    sequence?: Uint32Array;
    streamConfig?: CreateLanes["streamConfig"];
  },
): Promise<BenchStream> {
  const number = ++streams;
  const name = `BENCH-${number}`;
  const connection = await connect({ servers: [...server.urls] });
  try {
    const create: CreateLanes = {
      subject: `bench${number}`,
      lanes: options.lanes,
      // nats-server 2.15 refuses a stream's 1,001st consumer unless its configuration allows more (measured: 10026).
      streamConfig: { max_consumers: 4 * options.lanes + 100, ...options.streamConfig },
    };
    const lanes = await openLanes<BenchEvents>(connection, { stream: name, create });
    const { sequence = new Uint32Array() } = options;
    if (sequence.length > 0) await fill(lanes.publisher(), sequence, options.keys);
    const { layout } = lanes;
    await lanes.close();
    const { state } = await (await jetstreamManager(connection)).streams.info(name);
    if (state.messages !== sequence.length) {
      throw new Error(`${sequence.length} events were published and ${state.messages} are stored`);
    }
    return { server, name, layout, create, keys: options.keys, messages: state.messages };
  } finally {
    await connection.close();
  }
}

/** Deletes the stream and the claims of its groups. */
export async function deleteStream({ server, name }: BenchStream): Promise<void> {
  const connection = await connect({ servers: [...server.urls] });
  try {
    const { streams } = await jetstreamManager(connection);
    await streams.delete(name);
    const buckets = await streams.names(`$KV.lanekeeper_${name}.>`).next();
    await Promise.all(buckets.map((bucket) => streams.delete(bucket)));
  } finally {
    await connection.close();
  }
}

async function fill(
  publisher: LanePublisher<BenchEvents>,
  sequence: Uint32Array,
  keys: number,
): Promise<void> {
  const maker = new EventMaker(keys);
  let failure: unknown;
  for (const key of sequence) {
    await publisher.ready();
    publisher
      .publish({ key: keyName(key), type: EVENT_TYPE, data: maker.next(key) })
      .catch((error: unknown) => {
        failure ??= error;
      });
  }
  await publisher.flush();
  if (failure !== undefined) throw failure;
}
