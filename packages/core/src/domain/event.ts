/** What an event carries beside its type and data. */
export interface EventMeta {
  readonly key: string;
  /** The publisher's `Nats-Msg-Id`, where there is one. */
  readonly id?: string;
  /** The subject under which the stream stored the event. */
  readonly subject: string;
  /** The payload as stored, before the codec. */
  readonly bytes: Uint8Array;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly lane: number;
  readonly generation: number;
  /** The stream sequence; events of one key rise. */
  readonly seq: number;
  /** The server's time of storing. */
  readonly storedAt: Date;
  /** From 1: deliveries of this event by the server, plus the retries this worker has made itself. */
  readonly attempt: number;
}

/**
 * A union discriminated by `type`: `if (event.type === "paid") event.data` is a payment.
 * `LaneEvent<never>` fits every handler, as an event made for a test must.
 */
export type LaneEvent<E extends object> = Readonly<
  {
    [K in keyof E & string]: EventMeta & {
      readonly type: [E] extends [never] ? never : K;
      readonly data: E[K];
    };
  }[keyof E & string]
>;

/** What a publisher is given. */
export interface OutgoingEvent<E extends object, K extends keyof E & string> {
  /** The unit of order: non-empty, well-formed Unicode, at most 512 bytes once encoded. */
  key: string;
  /** One or more dot-separated tokens; a server mapping's intake fixes how many. */
  type: K;
  data: E[K];
  /**
   * The event's message id (`Nats-Msg-Id`). The stream stores one event per id within its duplicate window
   * and answers a second with `duplicate: true`. Default: unique per call, so equal payloads are both stored.
   */
  id?: string;
  /**
   * The sequence of this key's newest event as the caller knows it, 0 for none yet; anything else is stored in
   * the stream: the publish is refused with WRONG_LAST_SEQUENCE. For event sourcing.
   */
  expectLastSeq?: number;
  /** Extra headers; names beginning with `Nats-` are refused. */
  headers?: Record<string, string | readonly string[]>;
}

export interface PublishReceipt {
  readonly lane: number;
  /** The stream sequence: of the first copy, when `duplicate`. */
  readonly seq: number;
  /** The stream already held an event with this id. */
  readonly duplicate: boolean;
}

/**
 * What a handler passes to a database to prove that its hold of the key is current: refuse a write whose `token` is
 * lower than the one stored for the key under the same `incarnation`. docs/guarantees.md has the SQL and the limits.
 */
export interface Fence {
  readonly token: number;
  /** Changes when the stream is made anew or the group is rewound; stored tokens of another incarnation do not count. */
  readonly incarnation: string;
}

export interface HandlerContext {
  /** Aborted with a LanekeeperError: code FENCED, HANDLER_TIMEOUT, or CLOSING when the grace ends. */
  readonly signal: AbortSignal;
  readonly fence: Fence;
  readonly group: string;
  readonly workerId: string;
}

/** Settles when the event's effects are done: a resolved promise lets the key's next event start. */
export type Handler<E extends object> = (
  event: LaneEvent<E>,
  context: HandlerContext,
) => void | Promise<void>;
