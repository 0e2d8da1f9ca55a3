import { setTimeout as sleep } from "node:timers/promises";
import { openLanes, type WorkerOptions } from "@lanekeeper/core";
import { connect } from "@nats-io/transport-node";
import type { BenchEvents } from "../workload/bench-event.js";
import type { Reader } from "./reader.js";

export interface LanekeeperReaderOptions {
  /** As shown; default: made of the options. */
  readonly name?: string;
  readonly maxAckPending: number;
  /** Handlers at once. */
  readonly concurrency: number;
}

const LANES_DEADLINE_MS = 60_000;

let groups = 0;

/** Lanekeeper's worker with owned lanes. Its lane count is the stream's. */
export function lanekeeperReader({
  maxAckPending,
  concurrency,
  name = `lanekeeper, maxAckPending ${maxAckPending}`,
}: LanekeeperReaderOptions): Reader {
  return {
    name,
    async start(stream, handle) {
      const connection = await connect({ servers: [...stream.server.urls] });
      try {
        const lanes = await openLanes<BenchEvents>(connection, {
          stream: stream.name,
          create: stream.create,
        });
        const group = `g${++groups}`;
        const options: WorkerOptions<BenchEvents> = { group, maxAckPending, concurrency };
        const worker = await lanes.work(options, ({ data }) => handle(data));
        const deadline = performance.now() + LANES_DEADLINE_MS;
        while (worker.lanes().length < stream.layout.lanes) {
          if (performance.now() > deadline) {
            throw new Error(`after ${LANES_DEADLINE_MS} ms the worker has ${worker.lanes().length} lanes`);
          }
          await sleep(2);
        }
        return {
          async stop() {
            try {
              await worker.close();
              const { pending, inFlight } = await lanes.group(group).status();
              await lanes.group(group).delete();
              await lanes.close();
              return { unsettled: pending + inFlight };
            } finally {
              await connection.close();
            }
          },
        };
      } catch (error) {
        await connection.close();
        throw error;
      }
    },
  };
}
