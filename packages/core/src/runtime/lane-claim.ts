import { type ClaimRecord, formatClaim, parseClaim, without } from "../domain/claim-record.js";
import type { ProgressRecord } from "../domain/lane-progress.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Lease } from "../domain/lease.js";
import { recordVersion } from "../domain/member-record.js";
import type { BucketEntry, BucketPort } from "./bucket-port.js";

/** What a lane's claim needs of its worker. */
export interface ClaimHost {
  readonly bucket: BucketPort;
  readonly newNonce: () => string;
  memberId(): string;
  lease(): Lease;
  incarnation(): string;
  /** The highest epoch in the name of a consumer of the lane. */
  newestEpoch(lane: number): Promise<number>;
  /** A record was read that may be newer than what the worker knows. */
  seen(entry: BucketEntry): void;
}

/** A lane's record as it was last seen: a claim that rests on an old one is refused, and the new one is seen then. */
export interface KnownClaim {
  readonly record: ClaimRecord | "newer" | undefined;
  /** 0: it was never seen. */
  readonly revision: number;
}

interface Held {
  readonly record: ClaimRecord;
  readonly revision: number;
}

const updateAttempts = 5;

/**
 * This worker's claim of one lane, or that it has none. Changed by compare-and-set only; every write carries a nonce by
 * which one of unknown outcome is recognised (O6).
 */
export class LaneClaim {
  readonly #lane: number;
  readonly #key: string;
  readonly #host: ClaimHost;
  readonly #lost: () => void;
  #held: Held | undefined;

  /** `lost` is called when the claim is found to be another's; it is gone by then. */
  constructor(lane: number, key: string, host: ClaimHost, lost: () => void) {
    this.#lane = lane;
    this.#key = key;
    this.#host = host;
    this.#lost = lost;
  }

  /** Undefined: the lane is not this worker's. */
  get record(): ClaimRecord | undefined {
    return this.#held?.record;
  }

  /** Forgets it, without a word to the bucket. */
  drop(): void {
    this.#held = undefined;
  }

  /**
   * Claims the lane if nobody has it, or a member that is dead, or we ourselves without knowing. Losing it is no failure:
   * somebody else was faster.
   */
  async take(known: KnownClaim, deadOwner: string | undefined): Promise<void> {
    const previous = this.#judge(known.record);
    if (previous === "newer") return;
    const owner = previous?.owner;
    if (owner !== undefined && owner !== deadOwner && owner !== this.#host.memberId()) return;
    this.#held = await this.#write(previous, known.revision, deadOwner);
  }

  /** Claims our own lane again: another epoch, and with it another consumer. */
  async renew(progress: ProgressRecord | undefined): Promise<void> {
    const entry = await this.#host.bucket.read(this.#key);
    if (entry !== undefined) this.#host.seen(entry);
    const current = this.#held;
    if (current === undefined) return;
    const previous = this.#judge(entry?.value === undefined ? undefined : parseClaim(entry.value));
    if (entry === undefined || !this.#isOurs(previous, current)) return this.#lose();
    const kept = without(previous, "cleanAt");
    const claim = await this.#write(
      progress === undefined ? kept : { ...kept, progress },
      entry.revision,
      undefined,
    );
    if (this.#held !== current) return;
    if (claim === undefined) this.#lose();
    else this.#held = claim;
  }

  /** Changes the record; loses the claim when it is not ours any more. Rejects when nothing is known. */
  async update(change: (record: ClaimRecord) => ClaimRecord): Promise<void> {
    const { bucket } = this.#host;
    for (let attempt = 0; attempt < updateAttempts; attempt++) {
      const held = this.#held;
      if (held === undefined) return;
      const record = change(held.record);
      const text = formatClaim(record);
      const outcome = await bucket.write(this.#key, text, held.revision);
      if (outcome.type === "written") {
        if (this.#held === held) this.#held = { record, revision: outcome.revision };
        return;
      }
      const entry = await bucket.read(this.#key);
      // Another update of ours came in between; this one is made on top of it.
      if (this.#held !== held) continue;
      if (entry?.value === text) {
        this.#held = { record, revision: entry.revision };
        return;
      }
      const found = entry?.value === undefined ? undefined : parseClaim(entry.value);
      if (entry === undefined || !this.#isOurs(found, held)) return this.#lose();
      this.#held = { record: { ...found, epoch: held.record.epoch }, revision: entry.revision };
    }
    throw new LanekeeperError("REQUEST_TIMEOUT", `the claim of lane ${this.#lane} could not be written`);
  }

  /** Another revision was seen: not ours any more unless it carries our nonce. */
  observed(entry: BucketEntry): void {
    const held = this.#held;
    if (held === undefined || entry.revision <= held.revision) return;
    const record = entry.value === undefined ? undefined : parseClaim(entry.value);
    if (!this.#isOurs(record, held)) this.#lose();
    else this.#held = { record: { ...record, epoch: held.record.epoch }, revision: entry.revision };
  }

  #isOurs(found: ClaimRecord | "newer" | undefined, held: Held): found is ClaimRecord {
    if (found === undefined || found === "newer") return false;
    return found.owner === this.#host.memberId() && found.nonce === held.record.nonce;
  }

  #lose(): void {
    this.#held = undefined;
    this.#lost();
  }

  /** Of another life of stream or group, a record says nothing about this one. */
  #judge(record: ClaimRecord | "newer" | undefined): ClaimRecord | "newer" | undefined {
    return record === "newer" || record?.incarnation === this.#host.incarnation() ? record : undefined;
  }

  async #write(
    previous: ClaimRecord | undefined,
    expected: number,
    deadOwner: string | undefined,
  ): Promise<Held | undefined> {
    const host = this.#host;
    const named = await host.newestEpoch(this.#lane);
    const nonce = host.newNonce();
    const kept = without(previous ?? emptyClaim(host.incarnation()), "givenTo");
    // Carried on with the claim, so that a claimant that dies before it has looked leaves the death on record.
    const diedUnder = previous?.diedUnder ?? deadOwner;
    const unseenDeath = diedUnder === undefined || previous === undefined ? {} : { diedUnder };
    const record: ClaimRecord = {
      ...kept,
      ...unseenDeath,
      version: recordVersion,
      owner: host.memberId(),
      leaseMs: host.lease().rules.leaseMs,
      nonce,
      epoch: 0,
    };
    const outcome = await host.bucket.write(this.#key, formatClaim(record), expected);
    let revision = outcome.type === "written" ? outcome.revision : 0;
    if (outcome.type !== "written") {
      // It may have been written all the same: the nonce tells.
      const entry = await host.bucket.read(this.#key);
      if (entry !== undefined) host.seen(entry);
      const found = entry?.value === undefined ? undefined : parseClaim(entry.value);
      if (entry === undefined || found === undefined || found === "newer" || found.nonce !== nonce)
        return undefined;
      revision = entry.revision;
    }
    const newest = Math.max(previous?.epoch ?? 0, previous?.consumerEpoch ?? 0, named);
    return { record: { ...record, epoch: Math.max(revision, newest + 1) }, revision };
  }
}

function emptyClaim(incarnation: string): ClaimRecord {
  return {
    version: recordVersion,
    incarnation,
    nonce: "",
    epoch: 0,
    consumerEpoch: 0,
    startSeq: 0,
    deaths: [],
  };
}
