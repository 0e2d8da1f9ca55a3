import { bucketKeys, readRecordKey } from "../domain/bucket-keys.js";
import { formatGroup, type GroupRecord, parseGroup } from "../domain/group-record.js";
import { type DeathCandidate, GroupView } from "../domain/group-view.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { Lease, type LeaseRules } from "../domain/lease.js";
import { formatMember, recordVersion } from "../domain/member-record.js";
import type { BucketEntry, BucketPort, BucketWatch } from "./bucket-port.js";
import type { Clock, Timer } from "./clock.js";
import { eachAtOnce } from "./each-at-once.js";
import { Member } from "./member.js";
import { patiently, persistently } from "./patience.js";

export interface OwnedGroupParts {
  readonly group: string;
  readonly generation: number;
  readonly lanes: number;
  readonly workerName: string;
  readonly rules: LeaseRules;
  readonly bucket: BucketPort;
  readonly clock: Clock;
  /** Aborts when nothing is to be waited for any longer. */
  readonly closing: AbortSignal;
  readonly newId: () => string;
  readonly observer: OwnedGroupObserver;
}

export interface OwnedGroupObserver {
  /** The lanes to claim and to give back may have changed. */
  changed(): void;
  /** A lane's record changed. */
  claimSeen(lane: number, entry: BucketEntry): void;
  /** A beat was confirmed. */
  beaten(): void;
  /** The group's record is another: it was rewound, or its bucket was lost. Every claim is void. */
  regrouped(): void;
  /** This member was called dead: every claim is lost. It has joined again as another one, or is about to. */
  deposed(): void;
}

const readsAtOnce = 16;
/** After which records of the dead that nothing refers to are removed. */
const forgetMs = 600_000;
const rejoinMs = 500;

/**
 * Takes part in a group: beats, watches the others, calls the dead dead. Everything is decided by compare-and-set; the
 * watch only says when to try.
 */
export class OwnedGroup {
  readonly view: GroupView;
  readonly #parts: OwnedGroupParts;
  #member: Member;
  #watch: BucketWatch | undefined;
  #timer: Timer | undefined;
  #record: GroupRecord | undefined;
  #agreeAgain: () => Promise<unknown> = () => Promise.resolve();
  #echoedAt: number;
  #deposing = new Set<string>();
  #leaving = false;
  /** A member is being made: there is to be one of this process, never two. */
  #joining = true;
  #over = false;

  constructor(parts: OwnedGroupParts) {
    this.#parts = parts;
    this.view = new GroupView(parts.lanes, parts.rules.leaseMs / 4, parts.rules.leaseMs);
    this.#member = this.#newMember();
    this.#echoedAt = parts.clock.now();
  }

  get memberId(): string {
    return this.#member.id;
  }

  get lease(): Lease {
    return this.#member.lease;
  }

  get record(): GroupRecord {
    if (this.#record === undefined) throw new Error("the group's record is read before it is used");
    return this.#record;
  }

  /**
   * Agrees with the other owners on where the group starts: the first to write decides; another stream starts anew.
   * True when it was this call that wrote.
   */
  async agree(wish: () => Promise<Omit<GroupRecord, "version">>, created: string): Promise<boolean> {
    this.#agreeAgain = () => this.agree(wish, created);
    const { bucket, group, clock, closing: signal } = this.#parts;
    const key = bucketKeys.group(group);
    const read = async () => {
      const entry = await patiently(clock, () => bucket.read(key), { signal });
      const found = entry?.value === undefined ? undefined : parseGroup(entry.value);
      return { revision: entry?.revision ?? 0, agreed: found?.created === created ? found : undefined };
    };
    const written = new Set<string>();
    const write = async () => {
      const before = await read();
      if (before.agreed !== undefined) return before.agreed;
      const record = { version: recordVersion, ...(await patiently(clock, wish, { signal })) };
      written.add(record.incarnation);
      await bucket.write(key, formatGroup(record), before.revision);
      return (await read()).agreed;
    };
    const agreed = await persistently(clock, write, { signal });
    if (agreed === undefined) {
      const text = `the record of group ${group} could not be written; try again`;
      throw new LanekeeperError("REQUEST_TIMEOUT", text);
    }
    this.#regroup(agreed);
    return written.has(agreed.incarnation);
  }

  /** Reads everything there is and joins. Resolves once this is a live member, or has ended meanwhile. */
  async join(): Promise<void> {
    const { bucket, group, clock, closing: signal } = this.#parts;
    if (this.#over) return;
    const prefix = bucketKeys.prefix(group);
    this.#watch = bucket.watch(prefix, (entry) => {
      if (entry.key === bucketKeys.member(group, this.memberId)) this.#echoedAt = this.#parts.clock.now();
      this.seen(entry);
    });
    const readAll = async () => eachAtOnce(await bucket.keys(prefix), readsAtOnce, (key) => bucket.read(key));
    const entries = await patiently(clock, readAll, { signal });
    for (const entry of entries) if (entry !== undefined) this.seen(entry);
    const attempt = async () => {
      if (this.#over) return true;
      if (this.#member.over) this.#member = this.#newMember();
      return (await this.#member.join()) || undefined;
    };
    if ((await persistently(clock, attempt, { signal })) === undefined) {
      throw new LanekeeperError("REQUEST_TIMEOUT", "joining the group timed out; try again");
    }
    // A member that nobody is would be given lanes.
    if (this.#over) return this.#member.remove();
    this.#joining = false;
    this.#timer = clock.after(this.#parts.rules.beatMs, () => this.#tick());
  }

  /** Takes no more lanes; the others may take those that are given back. */
  async leave(): Promise<void> {
    this.#leaving = true;
    await this.#member.leave();
  }

  /** `removed`: nothing is held any more, so the record can go. Otherwise it is left to be found dead. */
  async end(removed: boolean): Promise<void> {
    this.#over = true;
    this.#timer?.stop();
    this.#watch?.stop();
    if (removed) await this.#member.remove();
    else this.#member.stop();
  }

  /** A record was read or watched. */
  seen(entry: BucketEntry): void {
    const { group, generation, observer, clock } = this.#parts;
    const key = readRecordKey(group, entry.key);
    const now = clock.now();
    if (key?.type === "group") {
      const record = entry.value === undefined ? undefined : parseGroup(entry.value);
      if (record?.created === this.#record?.created && record !== undefined) this.#regroup(record);
    } else if (key?.type === "member") {
      if (this.view.member(key.id, entry.revision, entry.value, now)) observer.changed();
    } else if (key?.type === "lane" && key.generation === generation) {
      if (this.view.claim(key.lane, entry.revision, entry.value, now)) observer.changed();
      observer.claimSeen(key.lane, entry);
    }
  }

  #regroup(record: GroupRecord): void {
    const before = this.#record;
    this.#record = record;
    if (before !== undefined && before.incarnation !== record.incarnation) this.#parts.observer.regrouped();
  }

  #newMember(): Member {
    const { group, workerName, rules, bucket, clock, newId, observer } = this.#parts;
    const id = newId();
    return new Member({
      id,
      key: bucketKeys.member(group, id),
      name: workerName,
      lease: new Lease(rules),
      bucket,
      clock,
      observer: {
        beaten: (entry) => {
          this.seen(entry);
          observer.beaten();
        },
        // One that was called dead before its first beat was confirmed is replaced by whoever is joining.
        deposed: () => {
          if (!this.#joining) void this.#deposed(id);
        },
      },
    });
  }

  /** Called dead, but alive: says so, because a frozen process is not a crash, and joins as another member. */
  async #deposed(id: string): Promise<void> {
    const { bucket, group, observer, clock } = this.#parts;
    observer.deposed();
    this.#joining = true;
    while (!this.#over) {
      try {
        await this.#sayReturned(bucket, bucketKeys.member(group, id));
        if (this.#leaving) return;
        // The bucket may have been lost, and with it what the group had agreed on.
        await this.#agreeAgain();
        if (this.#over || this.#leaving) return;
        if (this.#member.over) this.#member = this.#newMember();
        if (await this.#member.join()) {
          if (this.#over) return void this.#member.remove();
          this.#joining = false;
          return observer.changed();
        }
      } catch {
        // The bucket cannot be reached; until it can, nothing is ours.
      }
      await new Promise<void>((resolve) => void clock.after(rejoinMs, resolve));
    }
  }

  async #sayReturned(bucket: BucketPort, key: string): Promise<void> {
    const entry = await bucket.read(key);
    const record = entry?.value === undefined ? undefined : (JSON.parse(entry.value) as { status?: string });
    if (entry !== undefined && record?.status === "dead") {
      await bucket.write(key, JSON.stringify({ ...record, status: "returned" }), entry.revision);
    }
  }

  #tick(): void {
    if (this.#over) return;
    const { clock, rules, observer } = this.#parts;
    const now = clock.now();
    this.#timer = clock.after(Math.min(rules.beatMs, 250), () => this.#tick());
    if (this.lease.lapsed(now, clock.wall())) return;
    for (const candidate of this.view.deathCandidates(this.memberId, now)) void this.#depose(candidate);
    for (const { id, revision } of this.view.forgotten(forgetMs, now)) void this.#forget(id, revision);
    if (now - this.#echoedAt > rules.leaseMs) {
      // Our own beats do not come back: the watch has fallen silent.
      this.#echoedAt = now;
      this.#watch?.restart();
    }
    observer.changed();
  }

  /** Success proves that no newer beat exists, and makes the dead one's next beat fail. */
  async #depose({ id, revision, record }: DeathCandidate): Promise<void> {
    if (this.#deposing.has(id)) return;
    this.#deposing.add(id);
    const { bucket, group } = this.#parts;
    const key = bucketKeys.member(group, id);
    try {
      // A record that is not there may have been removed: then a write has to expect the removal's revision.
      const missing = revision === 0 ? await bucket.read(key) : undefined;
      if (missing?.value !== undefined) return this.seen(missing);
      const dead = formatMember({
        version: recordVersion,
        name: record?.name ?? id,
        leaseMs: record?.leaseMs ?? 0,
        beat: 0,
        status: "dead",
      });
      const outcome = await bucket.write(key, dead, revision === 0 ? (missing?.revision ?? 0) : revision);
      if (outcome.type === "written") return this.seen({ key, revision: outcome.revision, value: dead });
      // Gone without a trace: it has left, and the watch never said so.
      this.seen((await bucket.read(key)) ?? { key, revision: revision + 1, value: undefined });
    } catch {
      // Tried again with the next tick.
    } finally {
      this.#deposing.delete(id);
    }
  }

  async #forget(id: string, revision: number): Promise<void> {
    const key = bucketKeys.member(this.#parts.group, id);
    const outcome = await this.#parts.bucket.remove(key, revision).catch(() => undefined);
    if (outcome?.type === "written") this.seen({ key, revision: outcome.revision, value: undefined });
  }
}
