import type { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { PullTrouble } from "../domain/pull-state.js";

/** One delivery of an event by a lane's consumer. */
export interface Delivery {
  readonly consumer: string;
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly seq: number;
  /** The consumer's own count of deliveries, this one included. */
  readonly deliverySeq: number;
  /** How often the server has delivered the event, this time included. */
  readonly deliveries: number;
  /** The server's time of storing, nanoseconds since the epoch as text: exact, and the same for every delivery. */
  readonly stamp: string;
  /** Where acks of this delivery go. */
  readonly reply: string;
}

export interface LaneFeedObserver {
  delivered(delivery: Delivery): void;
  trouble(consumer: string, kind: PullTrouble, text: string): void;
  /** The consumer was heard again after trouble. */
  recovered(consumer: string): void;
  /** The server refuses this user a pull, an answer or the inbox for deliveries; it holds until the next connection. */
  denied(error: LanekeeperError): void;
}

/**
 * Deliveries of any number of lane consumers, and what is answered to them. Nothing is sent while disconnected: what
 * the client would keep for later could arrive when the event is no longer ours (O6).
 */
export interface LaneFeed {
  add(consumer: string): void;
  /** At once: what is under way is dropped. */
  remove(consumer: string): void;
  /** Settled. Fire and forget: with MaxAckPending 1 the next delivery confirms it. False when disconnected. */
  ack(delivery: Delivery): boolean;
  /** As `ack`, and true once the server has confirmed it; false when it did not within the request timeout. */
  ackConfirmed(delivery: Delivery): Promise<boolean>;
  /** Gives the event up: it is never delivered again. */
  drop(delivery: Delivery, reason: string): boolean;
  /** Gives the event back, to be delivered again after `delayMs`. */
  release(delivery: Delivery, delayMs: number): boolean;
  /** Restarts the server's ack_wait; `confirmed` is called when the server has said so, and not otherwise. */
  working(delivery: Delivery, confirmed: () => void): boolean;
  /** Ends these consumers' pull requests, hands over what is under way, then resolves: nothing comes afterwards. */
  drain(consumers: readonly string[], timeoutMs: number): Promise<void>;
  /** Drops everything at once; after `drain` when closing in good order. */
  close(): void;
}

export type OpenLaneFeed = (observer: LaneFeedObserver) => LaneFeed;
