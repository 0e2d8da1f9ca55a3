import type { BenchData } from "../workload/bench-event.js";
import type { BenchStream } from "../workload/bench-stream.js";

/** What a benchmark does with an event. Subjects call it once for each delivery and ack when it is done. */
export type Handle = (data: BenchData) => void | Promise<void>;

/** A subject that reads a stream and is running. */
export interface RunningReader {
  /** Stops without losing acks and says how many events of the stream are not acked; then removes what it left there. */
  stop(): Promise<{ unsettled: number }>;
}

/** Something that reads a stream: Lanekeeper, or what a user would write instead. */
export interface Reader {
  readonly name: string;
  /** Resolves when it is ready for events everywhere; events may come before. Each call is an independent reader. */
  start(stream: BenchStream, handle: Handle): Promise<RunningReader>;
}
