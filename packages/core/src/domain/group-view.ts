import { type ClaimRecord, parseClaim } from "./claim-record.js";
import { assignLanes } from "./lane-assignment.js";
import { type MemberRecord, parseMember } from "./member-record.js";

/** One record as it was last seen. */
interface Seen<T> {
  readonly revision: number;
  /** When this process first saw this revision, monotonic milliseconds. */
  readonly since: number;
  readonly record: T;
}

/** A member to be called dead, by a compare-and-set at the revision that was seen unchanged for its whole lease. */
export interface DeathCandidate {
  readonly id: string;
  readonly revision: number;
  readonly record: MemberRecord | undefined;
}

/** What to do about the lanes, from one member's view. */
export interface LanePlan {
  /** Lanes to claim, with the dead member they are taken from. */
  readonly claim: readonly { readonly lane: number; readonly deadOwner: string | undefined }[];
  /** Lanes whose claim names this member. */
  readonly mine: readonly number[];
  /** Own lanes to give back, and for whom. */
  readonly giveBack: readonly { readonly lane: number; readonly to: string }[];
}

/** Milliseconds for which a lane that was given back for somebody is left to them. */
const reservedMs = 2_000;
/** The lease of a record that cannot be read. */
const unknownLeaseMs = 30_000;

/**
 * A group's members and claims as one process sees them: perhaps late, never ahead. Nothing here proves anything; what
 * comes out is tried by compare-and-set. Pure.
 */
export class GroupView {
  readonly #lanes: number;
  readonly #settleMs: number;
  readonly #provenMs: number;
  readonly #members = new Map<string, Seen<MemberRecord | undefined>>();
  readonly #claims = new Map<number, Seen<ClaimRecord | "newer" | undefined>>();
  /** When a lane was first seen with the owner that it has. */
  readonly #ownedSince = new Map<number, number>();
  /** Owners named by claims whose own record is not there. */
  readonly #missing = new Map<string, number>();
  readonly #firstSeen = new Map<string, number>();
  /** The longest time between a member's beats lately, in milliseconds: it fades by a tenth with each. */
  readonly #gaps = new Map<string, number>();

  /**
   * `settleMs`: how long a member has to be there before lanes of others are moved to it; and for how long one that has
   * not beaten still counts where lanes are free or could move, unless it beats more slowly than that. `provenMs`: how long before it is given those of a dead
   * one, which would stand still once more if it died, too.
   */
  constructor(lanes: number, settleMs: number, provenMs: number) {
    this.#lanes = lanes;
    this.#settleMs = settleMs;
    this.#provenMs = provenMs;
  }

  /** False when this or a newer revision is known already. `value` undefined: the record was removed. */
  member(id: string, revision: number, value: string | undefined, now: number): boolean {
    const known = this.#members.get(id);
    if (known !== undefined && known.revision >= revision) return false;
    if (value === undefined) {
      this.#members.delete(id);
      this.#firstSeen.delete(id);
      this.#gaps.delete(id);
      return known !== undefined;
    }
    const record = parseMember(value);
    if (known !== undefined) this.#gaps.set(id, Math.max(now - known.since, 0.9 * (this.#gaps.get(id) ?? 0)));
    this.#members.set(id, { revision, since: now, record });
    if (!this.#firstSeen.has(id)) this.#firstSeen.set(id, now);
    this.#missing.delete(id);
    return known?.record?.status !== record?.status;
  }

  claim(lane: number, revision: number, value: string | undefined, now: number): boolean {
    const known = this.#claims.get(lane);
    if (known !== undefined && known.revision >= revision) return false;
    const record = value === undefined ? undefined : parseClaim(value);
    this.#claims.set(lane, { revision, since: now, record });
    const before = known?.record;
    if (ownerOf(before) !== ownerOf(record)) this.#ownedSince.set(lane, now);
    if (before === "newer" || record === "newer" || before === undefined || record === undefined) return true;
    return before.owner !== record.owner || before.nonce !== record.nonce;
  }

  claimOf(lane: number): { revision: number; record: ClaimRecord | "newer" | undefined } | undefined {
    return this.#claims.get(lane);
  }

  /** Whether every lane has, or had, an owner that made its consumer. */
  everyLaneHasConsumer(incarnation: string): boolean {
    return Array.from({ length: this.#lanes }, (_, lane) => this.#claims.get(lane)?.record).every(
      (record) =>
        record !== undefined &&
        record !== "newer" &&
        record.incarnation === incarnation &&
        record.consumer !== undefined,
    );
  }

  /** Members that take lanes, sorted. */
  live(): string[] {
    return [...this.#members].flatMap(([id, { record }]) => (record?.status === "live" ? [id] : [])).sort();
  }

  names(): { id: string; name: string; status: MemberRecord["status"] }[] {
    return [...this.#members].flatMap(([id, { record }]) =>
      record === undefined ? [] : [{ id, name: record.name, status: record.status }],
    );
  }

  /** Members called dead that came back: frozen, not crashed. */
  frozen(): ReadonlySet<string> {
    return new Set(
      [...this.#members].flatMap(([id, { record }]) => (record?.status === "returned" ? [id] : [])),
    );
  }

  /** Members but `self` whose record has not changed for a whole lease, and owners without a record for as long. */
  deathCandidates(self: string, now: number): DeathCandidate[] {
    const candidates: DeathCandidate[] = [];
    for (const [id, { revision, since, record }] of this.#members) {
      const over = record?.status === "dead" || record?.status === "returned";
      if (id !== self && !over && now - since >= (record?.leaseMs ?? unknownLeaseMs))
        candidates.push({ id, revision, record });
    }
    for (const [id, leaseMs] of this.#ownersWithoutRecord()) {
      if (id === self) continue;
      const since = this.#missing.get(id) ?? now;
      this.#missing.set(id, since);
      if (now - since >= leaseMs) candidates.push({ id, revision: 0, record: undefined });
    }
    return candidates;
  }

  /** Records of the dead that nothing refers to any more, unchanged for `ms`. */
  forgotten(ms: number, now: number): { id: string; revision: number }[] {
    const needed = new Set<string>();
    for (const { record } of this.#claims.values()) {
      if (record === undefined || record === "newer") continue;
      for (const id of [record.owner, record.diedUnder, ...record.deaths.map(({ member }) => member)])
        if (id) needed.add(id);
    }
    return [...this.#members].flatMap(([id, { revision, since, record }]) => {
      const over = record?.status === "dead" || record?.status === "returned";
      return over && !needed.has(id) && now - since >= ms ? [{ id, revision }] : [];
    });
  }

  /** What `self` should do, given the claims of this incarnation. Empty when `self` does not take part. */
  plan(self: string, incarnation: string, now: number): LanePlan {
    const live = this.live();
    if (!live.includes(self)) return { claim: [], mine: [], giveBack: [] };
    const joined = this.#firstSeen.get(self) ?? now;
    const states = Array.from({ length: this.#lanes }, (_, lane) => this.#laneState(lane, incarnation, now));
    const owners = states.map(({ owner }) => owner);
    // R31: one that has died without being called dead yet must not hold up what nobody has.
    const beating = live.filter((id) => id === self || this.#isBeating(id, now));
    // Lanes move to a member only once it has been there for a moment; free ones it may take at once.
    const settled = beating.filter(
      (id) => id === self || now - (this.#firstSeen.get(id) ?? now) >= this.#settleMs,
    );
    const target = assignLanes(beating, owners);
    const heirs = assignLanes(this.#proven(self, beating, now), owners);
    const claim = states.flatMap(({ owner, free, deadOwner, since }, lane) => {
      // R31: members that come and die at once could each be left a free lane in turn.
      const isLeft = now - (since ?? joined) >= this.#provenMs;
      const isNew = deadOwner === undefined && target[lane] === self;
      const takes = isNew || ((deadOwner !== undefined || isLeft) && heirs[lane] === self);
      return free && takes && (owner === undefined || owner === self) ? [{ lane, deadOwner }] : [];
    });
    const moves = assignLanes(settled, owners);
    const giveBack = owners.flatMap((owner, lane) => {
      const to = moves[lane];
      // R31: one that is taken over and moved on at once has started nothing; its next owner may die, too.
      const hasRun = now - (this.#ownedSince.get(lane) ?? now) >= this.#settleMs;
      const mine = owner === self && states[lane]?.free === false && hasRun;
      return mine && to !== undefined && to !== self ? [{ lane, to }] : [];
    });
    const mine = states.flatMap(({ owner, free }, lane) => (owner === self && !free ? [lane] : []));
    return { claim, mine, giveBack };
  }

  #laneState(lane: number, incarnation: string, now: number): LaneState {
    const seen = this.#claims.get(lane);
    const record = seen?.record;
    if (record === "newer") return { owner: "", free: false, deadOwner: undefined, since: undefined };
    const freeLane = { owner: undefined, free: true, deadOwner: undefined, since: seen?.since };
    if (seen === undefined || record === undefined || record.incarnation !== incarnation) return freeLane;
    if (record.owner === undefined) {
      // Counted as the other's already, so that nobody else's share is computed from it.
      const { givenTo } = record;
      const reserved = givenTo !== undefined && now - seen.since < reservedMs && this.#mayTake(givenTo, now);
      return reserved ? { ...freeLane, owner: givenTo } : freeLane;
    }
    const status = this.#members.get(record.owner)?.record?.status;
    if (status === "dead" || status === "returned") return { ...freeLane, deadOwner: record.owner };
    return { owner: record.owner, free: false, deadOwner: undefined, since: undefined };
  }

  /**
   * Seen to beat a moment ago: one that died as soon as it had come is not, by the time that lanes could move to it. By its
   * own rhythm: one that is slow, or has a longer lease, would be given lanes at each beat and counted out before the next.
   */
  #isBeating(id: string, now: number): boolean {
    const silentMs = now - (this.#members.get(id)?.since ?? now);
    const usualMs = Math.max(this.#settleMs, 1.5 * (this.#gaps.get(id) ?? 0));
    return silentMs <= Math.min(usualMs, this.#provenMs);
  }

  /**
   * Members that have been there for a while, or were there before this one came; all of them when there is none. A member
   * counts itself no later than any other does, so a lane that is left to it is taken.
   */
  #proven(self: string, live: readonly string[], now: number): readonly string[] {
    const own = this.#firstSeen.get(self) ?? now;
    const proven = live.filter((id) => {
      const since = this.#firstSeen.get(id) ?? now;
      return now - since >= this.#provenMs || since < own;
    });
    return proven.length > 0 ? proven : live;
  }

  #mayTake(id: string, now: number): boolean {
    return this.#members.get(id)?.record?.status === "live" && this.#isBeating(id, now);
  }

  #ownersWithoutRecord(): Map<string, number> {
    const missing = new Map<string, number>();
    for (const { record } of this.#claims.values()) {
      if (record === undefined || record === "newer" || record.owner === undefined) continue;
      if (!this.#members.has(record.owner)) missing.set(record.owner, record.leaseMs ?? unknownLeaseMs);
    }
    for (const id of [...this.#missing.keys()]) if (!missing.has(id)) this.#missing.delete(id);
    return missing;
  }
}

interface LaneState {
  /** The member that has it, or is to have it; "" when its record may not be touched. */
  readonly owner: string | undefined;
  /** Nobody alive holds it. */
  readonly free: boolean;
  readonly deadOwner: string | undefined;
  /** When its record was first seen as it is; undefined: there is none, or it is not free. */
  readonly since: number | undefined;
}

function ownerOf(record: ClaimRecord | "newer" | undefined): string | undefined {
  return record === "newer" ? undefined : record?.owner;
}
