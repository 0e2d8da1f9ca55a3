import type { Route } from "@lanekeeper/partitioner";
import type { PublishReceipt } from "../domain/event.js";
import type { LanekeeperError } from "../domain/lanekeeper-error.js";
import { PendingPublish } from "../domain/publish-pending.js";
import type { PublishMessage } from "./publish-port.js";

/** What an event is made of, beside its key. */
export interface PublishParts {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly route: Route;
  /** The caller's id. */
  readonly ownId: string | undefined;
  /** Header lines beside the message id, as text. */
  readonly moreHeaders: string;
  readonly expectLastSeq: number | undefined;
}

/** An accepted event with what is needed to send it, send it again and settle its call: one object for each. */
export class PublishEvent extends PendingPublish implements PublishMessage {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly moreHeaders: string;
  readonly route: Route;
  readonly expectLastSeq: number | undefined;
  /** Counts accepted calls. */
  readonly number: number;
  resolve: (receipt: PublishReceipt) => void = nobody;
  reject: (error: LanekeeperError) => void = nobody;
  readonly #idPrefix: string;
  readonly #ownId: string | undefined;

  constructor(
    parts: PublishParts,
    bytes: number,
    batchable: boolean,
    deadlineAt: number,
    number: number,
    idPrefix: string,
  ) {
    super(parts.route.key, bytes, batchable, deadlineAt, parts.ownId === undefined);
    this.subject = parts.subject;
    this.payload = parts.payload;
    this.moreHeaders = parts.moreHeaders;
    this.route = parts.route;
    this.expectLastSeq = parts.expectLastSeq;
    this.number = number;
    this.#idPrefix = idPrefix;
    this.#ownId = parts.ownId;
  }

  /** Written each time it is asked for: most events are sent once, and wait without it until then. */
  get id(): string {
    return this.#ownId ?? `${this.#idPrefix}.${this.number.toString(36)}`;
  }
}

function nobody(): void {}
