/** One record of the bucket. The revision rises with every write of any record and is never used twice. */
export interface BucketEntry {
  readonly key: string;
  readonly revision: number;
  /** Undefined: the record was removed. */
  readonly value: string | undefined;
}

export type WriteOutcome =
  | { readonly type: "written"; readonly revision: number }
  /** The record was not at the expected revision: nothing was written. */
  | { readonly type: "conflict" }
  /** No definite answer: it may have been written, now or later. Read back and compare what was written. */
  | { readonly type: "unknown" };

/** The records of groups, changed by compare-and-set. Every call has a deadline; rejections are LanekeeperErrors. */
export interface BucketPort {
  /** More than one: elections stop writes for 4 to 9 s. */
  readonly replicas: number;
  /** Asked of the leader. A removed record may still be there, without a value. Undefined: nothing is there. */
  read(key: string): Promise<BucketEntry | undefined>;
  /** `expected`: the record's revision, or 0 where a read finds nothing. */
  write(key: string, value: string, expected: number): Promise<WriteOutcome>;
  /** Removes a record. A later write expects what a read says then. */
  remove(key: string, expected: number): Promise<WriteOutcome>;
  /** Keys under `prefix`, perhaps also of records just removed; asked of the leader. */
  keys(prefix: string): Promise<string[]>;
  /**
   * Tells every record under `prefix` as it is, then every change, per key in order of revision. It may be late, repeat
   * itself, or fall silent: nothing is proved by it.
   */
  watch(prefix: string, changed: (entry: BucketEntry) => void): BucketWatch;
}

export interface BucketWatch {
  /** Starts over and tells everything again; for a watch that has fallen silent. */
  restart(): void;
  stop(): void;
}

/** Opens the bucket, and makes it when that was asked for. */
export type OpenBucket = () => Promise<BucketPort>;
