import { bucketKeys, readRecordKey } from "../domain/bucket-keys.js";
import { parseClaim } from "../domain/claim-record.js";
import { formatGroup, type GroupRecord } from "../domain/group-record.js";
import { parseMember, recordVersion } from "../domain/member-record.js";
import type { GroupStart } from "../domain/worker-options.js";
import type { BucketPort } from "./bucket-port.js";
import { type Clock, pause } from "./clock.js";
import type { GroupConsumers } from "./group-consumers.js";
import type { GroupLanes } from "./group-lanes.js";
import type { LaneView } from "./lane-view.js";
import type { StreamSnapshot } from "./stream-port.js";

export interface OwnedGroupLanesParts {
  readonly group: string;
  readonly generation: number;
  readonly bucket: BucketPort;
  readonly consumers: GroupConsumers;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly record: GroupRecord;
}

/** Lanes of owned workers, read from their claims. */
export class OwnedGroupLanes implements GroupLanes {
  readonly recorded = true;
  readonly #parts: OwnedGroupLanesParts;

  constructor(parts: OwnedGroupLanesParts) {
    this.#parts = parts;
  }

  async read(): Promise<readonly LaneView[]> {
    const names = await this.#memberNames();
    return this.#parts.consumers.eachLane((lane) => this.#readLane(lane, names));
  }

  async readLane(lane: number): Promise<LaneView> {
    return this.#readLane(lane, new Map());
  }

  /** Workers whose record changes within its lease. A record that does not is that of a dead one. */
  async live(): Promise<readonly string[]> {
    const before = await this.#members();
    const longest = before.reduce((most, { leaseMs }) => Math.max(most, leaseMs), 0);
    if (before.length === 0) return [];
    await pause(this.#parts.clock, longest);
    const after = new Map((await this.#members()).map((member) => [member.id, member.revision]));
    return before.flatMap(({ id, name, revision }) => {
      const now = after.get(id);
      return now !== undefined && now !== revision ? [name] : [];
    });
  }

  async delete(): Promise<void> {
    const { bucket, consumers, group } = this.#parts;
    // The group's record first: without it claims and consumers that are left say nothing.
    await this.#remove(bucketKeys.group(group));
    for (const key of await bucket.keys(bucketKeys.prefix(group))) await this.#remove(key);
    await consumers.delete(group);
  }

  /** Removes every record; consumers stay. The group's record goes last: until then the group counts as owned. */
  async forget(): Promise<void> {
    const { bucket, group } = this.#parts;
    const last = bucketKeys.group(group);
    for (const key of await bucket.keys(bucketKeys.prefix(group))) if (key !== last) await this.#remove(key);
    await this.#remove(last);
  }

  /** A new incarnation in the group's record makes every claim void, in one step; then the old consumers go. */
  async rewind(to: GroupStart, snapshot: StreamSnapshot): Promise<void> {
    const { bucket, consumers, group, newId } = this.#parts;
    const record: GroupRecord = {
      version: recordVersion,
      created: snapshot.created,
      incarnation: `${snapshot.created}/${newId()}`,
      startSeq: await consumers.resolveStart(to, snapshot),
    };
    const entry = await bucket.read(bucketKeys.group(group));
    await bucket.write(bucketKeys.group(group), formatGroup(record), entry?.revision ?? 0);
    await consumers.delete(group);
  }

  async #readLane(lane: number, names: ReadonlyMap<string, string>): Promise<LaneView> {
    const { bucket, consumers, group, generation, record } = this.#parts;
    const { incarnation, startSeq } = record;
    const entry = await bucket.read(bucketKeys.lane(group, generation, lane));
    const claim = entry?.value === undefined ? undefined : parseClaim(entry.value);
    if (claim === undefined || claim === "newer" || claim.incarnation !== incarnation) {
      return { lane, state: undefined, startSeq };
    }
    const state = claim.consumer === undefined ? undefined : await consumers.readAny(claim.consumer, lane);
    const owner = claim.owner === undefined ? undefined : (names.get(claim.owner) ?? claim.owner);
    return { lane, state, startSeq, ...(owner === undefined ? {} : { owner }) };
  }

  async #memberNames(): Promise<Map<string, string>> {
    return new Map((await this.#members()).map(({ id, name }) => [id, name]));
  }

  async #members(): Promise<{ id: string; name: string; leaseMs: number; revision: number }[]> {
    const { bucket, group } = this.#parts;
    const members = [];
    for (const key of await bucket.keys(`${group}.member.`)) {
      const kind = readRecordKey(group, key);
      const entry = await bucket.read(key);
      const record = entry?.value === undefined ? undefined : parseMember(entry.value);
      if (entry === undefined || kind?.type !== "member" || record === undefined) continue;
      if (record.status !== "live" && record.status !== "leaving") continue;
      members.push({ id: kind.id, name: record.name, leaseMs: record.leaseMs, revision: entry.revision });
    }
    return members;
  }

  async #remove(key: string): Promise<void> {
    const { bucket } = this.#parts;
    const entry = await bucket.read(key);
    if (entry?.value !== undefined) await bucket.remove(key, entry.revision);
  }
}
