import type { LanekeeperError } from "./lanekeeper-error.js";
import type { PublishBufferLimits } from "./publish-buffer.js";
import type { PendingPublish } from "./publish-pending.js";

/** What the publish queue has done in the world. None of these may call back into the queue before it returns. */
export interface PublishEffects<P extends PendingPublish> {
  /** Writes an attempt to the connection, after all those before. */
  send(publish: P, token: number): void;
  /** Writes an attempt to store these as one atomic batch, after all those before. One answer will be about it. */
  sendBatch(events: readonly P[], token: number): void;
  resolve(publish: P, seq: number, duplicate: boolean): void;
  reject(publish: P, error: LanekeeperError): void;
  /** Searches the stream for the event itself; answered by `PublishQueue.eventSeen`. */
  lookForEvent(publish: P): void;
  /** Looks at the stream's state; answered by `PublishQueue.streamSeen`. */
  lookAtStream(): void;
  /** A round trip to the server; answered by `PublishQueue.roundTrip`. */
  ping(): void;
}

export interface PublishLimits extends PublishBufferLimits {
  readonly timeoutMs: number;
  readonly duplicateWindowMs: number;
}
