/** The stream as its leader describes it. */
export interface StreamSnapshot {
  readonly name: string;
  /** The server's `created` time, as text; another value is another stream. */
  readonly created: string;
  readonly replicas: number;
  readonly retention: "limits" | "interest" | "workqueue";
  readonly subjects: readonly string[];
  readonly transform: { readonly src: string; readonly dest: string } | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly duplicateWindowMs: number;
  /** Whether it takes atomic batches; absent on servers that do not know them. */
  readonly allowAtomic?: boolean;
  /** Whether the stream may delete events from its front that nobody has handled (age or size limits). */
  readonly trims: boolean;
  /** Events in the stream; with interior deletions, fewer than lastSeq - firstSeq + 1. */
  readonly messages: number;
  readonly deleted: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** What the runtime asks of the stream. Every call has a deadline and rejects with a LanekeeperError. */
export interface StreamPort {
  /** Rejects with STREAM_NOT_FOUND, JETSTREAM_UNAVAILABLE (no leader, server down), REQUEST_TIMEOUT, PERMISSION_DENIED or API_ERROR. */
  read(): Promise<StreamSnapshot>;
  /** Whether the event is still stored. */
  holds(seq: number): Promise<boolean>;
  /** The first event at or after `fromSeq` whose subject matches `filter`, asked of the leader. */
  nextMatching(filter: string, fromSeq: number): Promise<StoredEvent | undefined>;
  /** The newest event whose subject matches `filter`, asked of the leader. */
  lastMatching(filter: string): Promise<StoredEvent | undefined>;
  /** The first sequence stored at or after a time, and 1 + the last sequence when there is none. */
  sequenceAt(time: Date): Promise<number>;
}

export interface StoredEvent {
  readonly seq: number;
  readonly subject: string;
  readonly id: string | undefined;
  readonly storedAt: Date;
}
