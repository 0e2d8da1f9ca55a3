import type { LaneLayout } from "@lanekeeper/partitioner";
import type { Handler } from "./domain/event.js";
import type { PublisherOptions } from "./domain/publisher-options.js";
import type { WorkerOptions } from "./domain/worker-options.js";
import type { Group } from "./runtime/group.js";
import type { LanePublisher } from "./runtime/lane-publisher.js";
import type { LaneWorker } from "./runtime/lane-worker.js";

/** A stream with lanes. `E` maps event types to their data. */
export interface Lanes<E extends object> extends AsyncDisposable {
  /** The layout found at open, or made. */
  readonly layout: LaneLayout;
  /** Throws INVALID_OPTIONS; CLOSED after close(). */
  publisher(options?: PublisherOptions): LanePublisher<E>;
  /**
   * Starts a worker of a group. Resolves once it takes part: every lane's consumer exists and is being pulled.
   * Rejects with INVALID_OPTIONS, CONSUMER_DIFFERS, CONSUMER_OVERLAPS, PERMISSION_DENIED or what reading the stream met.
   */
  work(options: WorkerOptions<E>, handler: Handler<E>): Promise<LaneWorker>;
  /** A group, whether or not workers run; the name is checked (INVALID_OPTIONS), nothing is sent. */
  group(name: string): Group;
  /** The names of the groups that have consumers on this stream, sorted. */
  groups(): Promise<string[]>;
  /** Closes its workers and publishers, at once and bounded by their own limits; never the connection it was given. */
  close(): Promise<void>;
}
