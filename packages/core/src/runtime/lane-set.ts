import type { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { PullTrouble } from "../domain/pull-state.js";
import type { Health } from "./health.js";
import type { LaneHost } from "./lane-host.js";
import type { LaneRunner } from "./lane-runner.js";
import type { Proof } from "./shared-policy.js";
import type { StreamSnapshot } from "./stream-port.js";

/** What a worker offers its lanes. */
export interface WorkerHost extends LaneHost {
  readonly health: Health;
  /** The send time of the newest answered ping. */
  proof(): Proof;
  /** Ends the worker: what is wrong does not mend itself. */
  fail(error: LanekeeperError): void;
}

/** A worker's lanes, by the way they are assigned. */
export interface LaneSet {
  /** Every lane this worker has or had. */
  readonly runners: readonly LaneRunner[];
  runnerOf(consumer: string): LaneRunner | undefined;
  /** The lanes it takes events from, ascending. */
  lanes(): number[];
  incarnation(): string;
  trouble(runner: LaneRunner, kind: PullTrouble, text: string): void;
  reconnected(): void;
  /** The stream was read and carries the layout. */
  streamSeen(snapshot: StreamSnapshot): void;
  tick(now: number, wall: number): void;
  /** Ends pulls, finishes the handlers that run, confirms their acks. Resolves when that is done; the caller bounds it. */
  giveBack(drainMs: number): Promise<void>;
  /** Lets go of everything, in whatever state it is. */
  end(): Promise<void>;
}
