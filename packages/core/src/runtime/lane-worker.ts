import type { LanekeeperError } from "../domain/lanekeeper-error.js";

/** A running worker of one group. */
export interface LaneWorker extends AsyncDisposable {
  readonly id: string;
  /** The lanes it takes events from, ascending; with `shared` assignment that is every lane. */
  lanes(): number[];
  status(): WorkerStatus;
  /**
   * Finishes everything in hand, confirms its acks, gives back what has not begun. Settles within `graceMs` (0 or more,
   * default 25,000) + 0.5 s: handlers that still run when the grace ends have their signal aborted (CLOSING) and their
   * events are left to be delivered again after ackWait. Idempotent; concurrent callers share one close. Never rejects.
   */
  close(options?: { graceMs?: number }): Promise<void>;
  /** Settles once, when the worker has ended for whatever reason; never rejects. */
  readonly closed: Promise<CloseReason>;
}

export interface WorkerStatus {
  readonly healthy: boolean;
  /** Why it is not healthy. */
  readonly error?: LanekeeperError;
  readonly lanes: number[];
  /** Events delivered to this worker and not settled. */
  readonly inFlight: number;
  readonly oldestHandler?: {
    readonly lane: number;
    readonly key: string;
    readonly seq: number;
    readonly ageMs: number;
  };
  /** Milliseconds by which the event loop is, or lately was, late. */
  readonly eventLoopLagMs: number;
}

export type CloseReason =
  | { readonly type: "closed" }
  | { readonly type: "connection-closed" | "stream-missing" | "failed"; readonly error: LanekeeperError };
