import type { LaneLayout } from "@lanekeeper/partitioner";
import type { BucketPort } from "../../packages/core/src/runtime/bucket-port.js";
import type { LaneConsumerPort } from "../../packages/core/src/runtime/lane-consumer-port.js";
import type { OpenLaneFeed } from "../../packages/core/src/runtime/lane-feed-port.js";
import type { StreamPort, StreamSnapshot } from "../../packages/core/src/runtime/stream-port.js";

export const contractLayout: LaneLayout = {
  subject: "orders",
  generation: 1,
  lanes: 2,
  hash: "murmur3",
  mapping: "publisher",
};

/** A server, real or simulated, behind the ports of the runtime: one stream of two lanes, one bucket. */
export interface ContractWorld extends AsyncDisposable {
  readonly stream: StreamPort;
  readonly consumers: LaneConsumerPort;
  readonly bucket: BucketPort;
  readonly openFeed: OpenLaneFeed;
  /** Stores an event; resolves once it is stored. */
  publish(key: string): Promise<void>;
  /** Milliseconds that only ever go on. */
  now(): number;
  sleep(ms: number): Promise<void>;
  /** Runs the body of a test, with the world's time going by meanwhile. */
  drive(body: () => Promise<void>): Promise<void>;
}

export type OpenContractWorld = (retention: StreamSnapshot["retention"]) => Promise<ContractWorld>;
