import type { LanekeeperError } from "../domain/lanekeeper-error.js";

/** What an attempt carries; the same for each attempt at an event. */
export interface PublishMessage {
  readonly subject: string;
  readonly payload: Uint8Array;
  /** `Nats-Msg-Id`. */
  readonly id: string;
  /** Header lines beside the message id, as `moreHeaderLines` made them. */
  readonly moreHeaders: string;
}

/** Told of every reply; must not throw. */
export interface PublishListener {
  answered(token: number, data: Uint8Array): void;
  noResponders(token: number): void;
  /** The client refused to write this attempt, or the last of this batch; CONNECTION_CLOSED when the connection is closed or draining. */
  notSent(token: number, error: LanekeeperError): void;
  /** The server refuses this connection the reply subscription: no answer will ever come. */
  inboxDenied(error: Error): void;
}

/** Where the server's mapping put one probe of {@link PublishPort.probe}. */
export interface MappingProbe {
  /** Published to. */
  readonly intake: string;
  /** A subject with wildcards that the mapped probe matches whatever its lane. */
  readonly filter: string;
}

/** What one publisher asks of its connection: attempts out, answers back, on one reply subscription. */
export interface PublishPort {
  /** Differs between any two ports, in any process. */
  readonly idPrefix: string;
  /** @throws LanekeeperError CONNECTION_CLOSED */
  listen(listener: PublishListener): void;
  /** Soon, in the order of the calls. */
  send(message: PublishMessage, token: number): void;
  /** As one atomic batch, at least two messages; soon, in the order of the calls. One answer comes for all. */
  sendBatch(messages: readonly PublishMessage[], token: number): void;
  /**
   * The subjects as which probes come out of the server's mappings, in order; undefined for one that cannot be seen, and
   * instead of all when the server was not heard. Nothing is stored. Never rejects.
   */
  probe(probes: readonly MappingProbe[], timeoutMs: number): Promise<(string | undefined)[] | undefined>;
  close(): void;
}
