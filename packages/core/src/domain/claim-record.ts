import type { ProgressRecord } from "./lane-progress.js";
import { parseObject, recordVersion } from "./member-record.js";

/** Deaths of owners while the lane's events were in flight; see {@link CrashSuspects}. */
export interface DeathRecord {
  /** The member that died. */
  readonly member: string;
  /** Sequences that were in flight. */
  readonly suspects: readonly number[];
}

/** The record of one lane of one group. Changed by compare-and-set only. */
export interface ClaimRecord {
  readonly version: number;
  /** Which group, in which life of the stream: a record of another incarnation says nothing about this one. */
  readonly incarnation: string;
  /** The member that has the lane; absent when it was given back. */
  readonly owner?: string;
  /** The owner's lease, for when its own record cannot be read. */
  readonly leaseMs?: number;
  /** Recognises a claim whose write timed out. */
  readonly nonce: string;
  /** The fence token: the revision of the claiming write, or more. 0 in that write itself. */
  readonly epoch: number;
  /** The lane's consumer, once there is one. */
  readonly consumer?: string;
  /** The epoch in its name. */
  readonly consumerEpoch: number;
  /** The first sequence that consumer delivers: on a replicated stream its ack floor is 0 until the first ack. */
  readonly startSeq: number;
  readonly progress?: ProgressRecord;
  /** Given back in good order: nothing pending, and this many deliveries made. */
  readonly cleanAt?: number;
  /** The member that the lane is given back for; others leave it alone for a moment. */
  readonly givenTo?: string;
  /** The owner from whom the lane was taken when it was dead, until the new one has looked what was in flight. */
  readonly diedUnder?: string;
  readonly deaths: readonly DeathRecord[];
  /** The one event that runs alone, while suspects are told apart. */
  readonly testing?: number;
  /** Events whose owner died once while they ran alone; another death then names them. */
  readonly tried?: readonly number[];
  /** An event found to kill its process: it is held and never started. */
  readonly poison?: readonly number[];
}

export function formatClaim(record: ClaimRecord): string {
  return JSON.stringify(record);
}

/** `newer`: written by a build whose records this one does not understand, and must not touch. */
export function parseClaim(text: string): ClaimRecord | "newer" | undefined {
  const value = parseObject(text);
  if (value === undefined || typeof value.version !== "number") return undefined;
  if (value.version > recordVersion) return "newer";
  const record = value as Partial<ClaimRecord>;
  if (typeof record.incarnation !== "string" || typeof record.nonce !== "string") return undefined;
  if (typeof record.startSeq !== "number" || typeof record.epoch !== "number") return undefined;
  return { consumerEpoch: 0, deaths: [], ...record } as ClaimRecord;
}

/** The record without some of its optional fields. */
export function without<K extends keyof ClaimRecord>(
  record: ClaimRecord,
  ...names: K[]
): Omit<ClaimRecord, K> {
  const rest: Partial<ClaimRecord> = { ...record };
  for (const name of names) delete rest[name];
  return rest as Omit<ClaimRecord, K>;
}
