/** What every record carries. */
export interface RecordBase {
  /** Who wrote it: one name per process start, never used again. */
  readonly process: string;
  /** From 1, rising by one within a process. */
  readonly n: number;
  /** Monotonic milliseconds of this machine (not of the process), with fractions: comparable across processes. */
  readonly atMs: number;
  /** Wall clock, milliseconds since the epoch, for reading along with a server's log. */
  readonly wallMs: number;
}

/** A publish as the caller sees it. `call` counts this process's publishes and names the event in the stream. */
export type PublishRecord =
  | { readonly kind: "publish-call"; readonly call: number; readonly key: string; readonly data?: unknown }
  | {
      readonly kind: "publish-settled";
      readonly call: number;
      readonly key: string;
      readonly seq: number;
      readonly lane: number;
      readonly duplicate: boolean;
    }
  | {
      readonly kind: "publish-failed";
      readonly call: number;
      readonly key: string;
      readonly error: string;
      readonly code?: string;
      /** The event is definitely not stored: refused by the server or before the wire. Otherwise unknown. */
      readonly refused: boolean;
    };

/** A handler's run. `run` counts this process's handler starts. */
export type HandlerRecord =
  | {
      readonly kind: "handler-start";
      readonly run: number;
      readonly group: string;
      readonly key: string;
      readonly seq: number;
      readonly lane: number;
      readonly attempt: number;
      /** Anything the handler's program finds worth keeping, such as the event's own position. */
      readonly data?: unknown;
    }
  | {
      readonly kind: "handler-end";
      readonly run: number;
      readonly group: string;
      readonly key: string;
      readonly seq: number;
      readonly outcome: "handled" | "failed";
      readonly error?: string;
    };

/** What a worker notified: retry, dropped, parked, blocked, overlap-possible… */
export interface NotificationRecord {
  readonly kind: "notification";
  readonly type: string;
  readonly group?: string;
  readonly lane?: number;
  readonly key?: string;
  readonly seq?: number;
  readonly code?: string;
  readonly message?: string;
  /** Of `loop-blocked`: for how long the event loop had stood still when it was told, milliseconds. */
  readonly lateMs?: number;
}

/** What happened to a process. Written by the one who did it; `about` names the process it happened to. */
export type ProcessRecord =
  | { readonly kind: "started"; readonly about: string; readonly pid: number }
  | { readonly kind: "killed"; readonly about: string }
  | {
      readonly kind: "exited";
      readonly about: string;
      readonly code: number | null;
      readonly signal: string | null;
    }
  /** Stopped (SIGSTOP), cut off from the server, or its event loop blocked: `why` says which. */
  | { readonly kind: "frozen"; readonly about: string; readonly why: string }
  | { readonly kind: "thawed"; readonly about: string };

/** What was seen on the wire, by a proxy. `client` is the connection's name. */
export interface WireRecord {
  readonly kind: "wire";
  readonly what: "delivery" | "+ACK" | "-NAK" | "+WPI" | "+TERM";
  readonly client: string;
  readonly consumer: string;
  readonly seq: number;
  readonly deliveries: number;
  readonly deliverySeq: number;
}

/**
 * A nats-server that stands alone was killed without a warning; written once it is dead, before it is started again.
 * What it knew of its consumers in the moments before may be gone.
 */
export interface ServerKilledRecord {
  readonly kind: "server-killed";
  /** Just before the signal was sent, on the records' own clock. */
  readonly sentAtMs: number;
}

/** A lane's consumer was deleted under its workers; written once the server has said so. */
export interface ConsumerDeletedRecord {
  readonly kind: "consumer-deleted";
  readonly lane: number;
  /** Just before the server was asked to, on the records' own clock. */
  readonly sentAtMs: number;
}

/** A fact worth keeping that no checker reads. */
export interface NoteRecord {
  readonly kind: "note";
  readonly text: string;
  readonly data?: unknown;
}

/** What is given to a recorder. */
export type HistoryEntry =
  | PublishRecord
  | HandlerRecord
  | NotificationRecord
  | ProcessRecord
  | WireRecord
  | ServerKilledRecord
  | ConsumerDeletedRecord
  | NoteRecord;

/** What is read back. */
export type HistoryRecord = RecordBase & HistoryEntry;

/** An event as it is in the stream. */
export interface StoredEvent {
  readonly seq: number;
  readonly key: string;
  readonly lane: number;
  readonly type: string;
  /** Which publish made it: the publishing process and its `call`. Absent where nothing recorded it. */
  readonly publishedBy?: { readonly process: string; readonly call: number };
  /** The atomic batch it came in. */
  readonly batch?: string;
}
