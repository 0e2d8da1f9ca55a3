/** The newest version of records that this build understands; it never touches newer ones. */
export const recordVersion = 1;

/** What a member writes about itself, again with every beat. */
export interface MemberRecord {
  readonly version: number;
  readonly name: string;
  readonly leaseMs: number;
  /** Rises with every beat, so that a beat of unknown outcome can be recognised. */
  readonly beat: number;
  /**
   * - `live`: takes part.
   * - `leaving`: gives its lanes back and takes none.
   * - `dead`: another member wrote it, at a revision that it had seen unchanged for a full lease.
   * - `returned`: called dead, but only frozen: its process did not crash.
   */
  readonly status: "live" | "leaving" | "dead" | "returned";
}

export function formatMember(record: MemberRecord): string {
  return JSON.stringify(record);
}

/** Undefined for what cannot be read: treated like a record that never changes, so its member is called dead in time. */
export function parseMember(text: string): MemberRecord | undefined {
  const value = parseObject(text);
  if (value === undefined) return undefined;
  const { version, name, leaseMs, beat, status } = value as Partial<MemberRecord>;
  const known = status === "live" || status === "leaving" || status === "dead" || status === "returned";
  if (typeof version !== "number" || typeof name !== "string" || typeof leaseMs !== "number" || !known)
    return undefined;
  return { version, name, leaseMs, beat: typeof beat === "number" ? beat : 0, status };
}

export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
