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
  readonly maxAckPending: number;
}

/** What a consumer is compared with. */
export interface ExpectedConsumer {
  readonly assignment: Assignment;
  /** Undefined: whatever it is, it is made to fit when the lane is taken up. */
  readonly maxAckPending: number | undefined;
}

/** What a group's consumer of one lane is. */
export interface LaneConsumerState {
  readonly name: string;
  readonly group: string | undefined;
  readonly generation: number | undefined;
  readonly lane: number | undefined;
  readonly incarnation: string | undefined;
  /** When it was made, in milliseconds since the epoch: one of the same name that was made anew has a later time. */
  readonly created: number;
  readonly groupStartSeq: number;
  /** The first sequence this consumer delivers; 1 is "all". */
  readonly startSeq: number;
  readonly ackWaitMs: number;
  readonly maxAckPending: number;
  /** The stream sequence up to which everything of the lane is settled; on replicated streams 0 until the first ack. */
  readonly ackFloor: number;
  /** Deliveries so far, redeliveries included. */
  readonly deliveries: number;
  /** The stream sequence of the newest delivery. */
  readonly deliveredSeq: number;
  /** Whether the server process that keeps it now has delivered anything of it. */
  readonly deliversAgain: boolean;
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
  read(name: string, filter: string, expected: ExpectedConsumer): Promise<LaneConsumerState | undefined>;
  /** False when a consumer of this name exists already and is made differently. Rejects with CONSUMER_OVERLAPS, PERMISSION_DENIED, …. */
  create(spec: LaneConsumerSpec): Promise<boolean>;
  update(name: string, settings: { ackWaitMs: number; maxAckPending: number }): Promise<void>;
  /** Also when it did not exist. */
  delete(name: string): Promise<void>;
  /** Every consumer on the stream that is Lanekeeper's. */
  list(): Promise<ListedConsumer[]>;
}

export interface ListedConsumer {
  readonly name: string;
  readonly group: string;
  readonly lane: number | undefined;
  readonly assignment: string | undefined;
  readonly incarnation: string | undefined;
  /** Open pull requests. */
  readonly waiting: number;
}
