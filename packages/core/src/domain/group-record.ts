import { parseObject } from "./member-record.js";

/** What all owners of a group agree on; written once, when the group is first seen, and again by a rewind. */
export interface GroupRecord {
  readonly version: number;
  /** The stream's `created` time: a stream made anew has other groups. */
  readonly created: string;
  readonly incarnation: string;
  readonly startSeq: number;
  /** The incarnation of the `shared` consumers that this group goes on from. */
  readonly from?: string;
}

export function formatGroup(record: GroupRecord): string {
  return JSON.stringify(record);
}

export function parseGroup(text: string): GroupRecord | undefined {
  const record = parseObject(text) as Partial<GroupRecord> | undefined;
  if (typeof record?.version !== "number" || typeof record.created !== "string") return undefined;
  if (typeof record.incarnation !== "string" || typeof record.startSeq !== "number") return undefined;
  return record as GroupRecord;
}
