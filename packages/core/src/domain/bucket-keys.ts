/**
 * Keys of a group's records: `<group>.group`, `<group>.member.<id>`, `<group>.lane.<generation>.<lane>`. Group names have
 * no dots, so groups cannot meet.
 */
export const bucketKeys = {
  prefix: (group: string) => `${group}.`,
  group: (group: string) => `${group}.group`,
  member: (group: string, id: string) => `${group}.member.${id}`,
  lane: (group: string, generation: number, lane: number) => `${group}.lane.${generation}.${lane}`,
};

export type RecordKey =
  | { readonly type: "group" }
  | { readonly type: "member"; readonly id: string }
  | { readonly type: "lane"; readonly generation: number; readonly lane: number };

/** What a key of this group's records stands for; undefined for anything else. */
export function readRecordKey(group: string, key: string): RecordKey | undefined {
  const [name, kind, first, second] = key.split(".");
  if (name !== group) return undefined;
  if (kind === "group" && first === undefined) return { type: "group" };
  if (kind === "member" && first !== undefined && second === undefined) return { type: "member", id: first };
  if (kind === "lane" && first !== undefined && second !== undefined) {
    return { type: "lane", generation: Number(first), lane: Number(second) };
  }
  return undefined;
}

/**
 * The bucket of a stream's groups, unless another is named. Bucket names allow fewer characters than stream names: what
 * they do not allow is written `-<hex>-`, and so is a "-" that could be taken for the beginning of that.
 */
export function defaultBucket(stream: string): string {
  const escaped = /[^A-Za-z0-9_-]|-(?=[0-9a-f]+[^A-Za-z0-9_])/g;
  return `lanekeeper_${stream.replace(escaped, (sign) => `-${sign.charCodeAt(0).toString(16)}-`)}`;
}
