import type { Assignment } from "../domain/worker-options.js";

/** What a group's consumer of one lane is to be. */
export interface LaneConsumerSpec {
  readonly name: string;
  readonly group: string;
  readonly assignment: Assignment;
  readonly generation: number;
  readonly lane: number;
  readonly filter: string;
  /** The first stream sequence it delivers; 1 is "all". */
  readonly startSeq: number;
  /** Where the group as a whole started; kept so that a lost consumer can be made again. */
  readonly groupStartSeq: number;
  readonly incarnation: string;
  readonly ackWaitMs: number;
}

/** What a group's consumer of one lane is. */
export interface LaneConsumerState {
  readonly name: string;
  readonly group: string | undefined;
  readonly generation: number | undefined;
  readonly lane: number | undefined;
  readonly incarnation: string | undefined;
  readonly groupStartSeq: number;
  readonly ackWaitMs: number;
  /** The stream sequence up to which everything of the lane is settled; on replicated streams 0 until the first ack. */
  readonly ackFloor: number;
  /** Deliveries so far, redeliveries included. */
  readonly deliveries: number;
  /** The stream sequence of the newest delivery. */
  readonly deliveredSeq: number;
  readonly pending: number;
  readonly inFlight: number;
  readonly redelivered: number;
  /** Open pull requests: more than none means that workers live. */
  readonly waiting: number;
  /** How it differs from what a lane needs, in words; empty when it fits. */
  readonly differences: readonly string[];
}

/** A group's consumers. Every call has a deadline and rejects with a LanekeeperError. */
export interface LaneConsumerPort {
  /** Undefined when there is none of this name. `filter` is what it must deliver. */
  read(name: string, filter: string): Promise<LaneConsumerState | undefined>;
  /** False when a consumer of this name exists already. Rejects with CONSUMER_OVERLAPS, PERMISSION_DENIED, …. */
  create(spec: LaneConsumerSpec): Promise<boolean>;
  setAckWait(name: string, ackWaitMs: number): Promise<void>;
  /** Also when it did not exist. */
  delete(name: string): Promise<void>;
  /** Names and groups of every consumer on the stream that is Lanekeeper's. */
  list(): Promise<{ name: string; group: string }[]>;
}
