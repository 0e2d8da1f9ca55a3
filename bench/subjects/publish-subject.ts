import type { NatsConnection } from "@nats-io/transport-node";
import type { BenchData } from "../workload/bench-event.js";
import type { BenchStream } from "../workload/bench-stream.js";

/** Publishes events in the order given; resolves when all of them are known to be stored, or are out where nobody acks. */
export interface PublishSubject {
  readonly name: string;
  publishAll(
    connection: NatsConnection,
    stream: Pick<BenchStream, "name" | "layout">,
    events: Iterable<BenchData>,
  ): Promise<void>;
}
