import { type ClaimRecord, formatClaim, parseClaim, without } from "../domain/claim-record.js";
import { cleared, recordDeath, suspectsOf } from "../domain/crash-suspects.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Lease } from "../domain/lease.js";
import { recordVersion } from "../domain/member-record.js";
import { describeThrown } from "../domain/thrown.js";
import type { BucketEntry, BucketPort } from "./bucket-port.js";
import type { Clock } from "./clock.js";
import type { Health } from "./health.js";
import { Isolation, type SuspectTurns } from "./isolation.js";
import type { LaneFeed } from "./lane-feed-port.js";
import type { LaneRunner } from "./lane-runner.js";
import type { LaneTakeover } from "./lane-takeover.js";
import type { Notify } from "./notifier.js";
import { OwnedPolicy } from "./owned-policy.js";

/** What the lanes of one owned worker share. */
export interface OwnedHost {
  readonly clock: Clock;
  readonly bucket: BucketPort;
  readonly feed: LaneFeed;
  readonly takeover: LaneTakeover;
  readonly turns: SuspectTurns;
  readonly notify: Notify;
  readonly health: Health;
  readonly newNonce: () => string;
  readonly drainMs: number;
  memberId(): string;
  lease(): Lease;
  incarnation(): string;
  /** Members called dead that were only frozen: their deaths do not count. */
  frozenMembers(): ReadonlySet<string>;
  /** What this worker knows of the lane's record is out of date; `entry` is newer. */
  seen(entry: BucketEntry): void;
}

type Phase = "free" | "claiming" | "running" | "rewinding" | "releasing";

interface Held {
  record: ClaimRecord;
  revision: number;
}

/** A lane's record as it was last seen: a claim that rests on an old one is refused, and the new one is seen then. */
export interface KnownClaim {
  readonly record: ClaimRecord | "newer" | undefined;
  /** 0: it was never seen. */
  readonly revision: number;
}

interface Judged {
  readonly previous: ClaimRecord | "newer" | undefined;
  readonly revision: number;
  readonly host: OwnedHost;
}

const progressMs = 1_000;
const retryMs = 300;

/**
 * One lane from an owner's side: claim it, take it up, rewind it, give it back. Steps of a lane never overlap; each ends in
 * a state that another member can go on from, wherever it is interrupted. O6: every step is a compare-and-set of the
 * claim first, and nothing starts before the claim names the consumer that is pulled.
 */
export class OwnedLane {
  readonly lane: number;
  readonly policy: OwnedPolicy;
  readonly #host: OwnedHost;
  readonly #key: string;
  readonly #isolation: Isolation;
  #runner: LaneRunner | undefined;
  #phase: Phase = "free";
  #claim: Held | undefined;
  #wanted = false;
  #broken = false;
  /** The claim was this worker's before: what it knows of the lane is newer than what the claim says. */
  #renewing = false;
  /** Whether this claim has been taken up: before that, the claim knows better. */
  #tookUp = false;
  #givenTo: string | undefined;
  #deadOwner: string | undefined;
  #known: KnownClaim = { record: undefined, revision: 0 };
  #steps: Promise<void> | undefined;
  #savedAt = 0;
  #saved = "";
  #ended = false;

  constructor(lane: number, key: string, host: OwnedHost) {
    this.lane = lane;
    this.#key = key;
    this.#host = host;
    this.#isolation = new Isolation(host.turns, (seq) => this.#markTesting(seq));
    this.policy = new OwnedPolicy(
      () => host.lease(),
      host.clock,
      this.#isolation,
      () => this.breakRun(),
    );
  }

  attach(runner: LaneRunner): void {
    this.#runner = runner;
  }

  /** Whether this worker holds the lane, fenced or not. */
  get held(): boolean {
    return this.#claim !== undefined;
  }

  get running(): boolean {
    return this.#phase === "running" && !this.#broken;
  }

  get busy(): boolean {
    return this.#steps !== undefined;
  }

  /** The lane is to be this worker's. `deadOwner`: whose claim it takes over; `known`: the claim as it was last seen. */
  want(deadOwner: string | undefined, known: KnownClaim): void {
    this.#wanted = true;
    this.#deadOwner = deadOwner;
    this.#known = known;
    this.#step();
  }

  /** The lane is to be given back: to `member`, or to anybody. Resolves when it is. */
  async giveBack(member: string | undefined): Promise<void> {
    this.#wanted = false;
    this.#givenTo = member;
    this.#step();
    while (this.#steps !== undefined) await this.#steps;
  }

  /** The unbroken run of deliveries has ended, or may have (O5): nothing starts until the lane is rewound. */
  breakRun(): void {
    if (this.#claim === undefined || this.#broken) return;
    this.#broken = true;
    this.policy.end();
    this.#step();
  }

  /** The lease is over, or the claim another's: what runs is aborted, and nothing is sent any more. */
  fence(lost: boolean): void {
    if (this.#claim === undefined) return;
    this.policy.end();
    this.#isolation.end();
    this.#broken = true;
    this.#unfeed();
    this.#runner?.reset(false);
    if (!lost) return;
    this.#claim = undefined;
    this.#phase = "free";
    this.#broken = false;
    this.#wanted = false;
    this.#host.health.clear(this.#cause);
    this.#host.notify({ type: "lane-released", lane: this.lane });
  }

  /** The lease holds again: goes on where it stopped, if the claim is still ours. */
  resume(): void {
    this.#step();
  }

  /** Another revision of the claim was seen: not ours any more unless it carries our nonce. */
  observed(entry: BucketEntry): void {
    const { memberId } = this.#host;
    if (this.#claim === undefined || entry.revision <= this.#claim.revision || this.#steps !== undefined)
      return;
    const record = entry.value === undefined ? undefined : parseClaim(entry.value);
    const mine = record !== undefined && record !== "newer" && record.owner === memberId();
    if (!mine || record.nonce !== this.#claim.record.nonce) this.fence(true);
    else this.#claim = { record, revision: entry.revision };
  }

  /**
   * Takes up what could not be done while the lease was over, which may have been too short to be noticed otherwise. Saves
   * what is settled above the ack floor, now and then; a takeover does not run it again.
   */
  tick(now: number): void {
    this.#step();
    if (this.#phase !== "running" || this.#steps !== undefined || now - this.#savedAt < progressMs) return;
    this.#savedAt = now;
    const progress = this.policy.memory.record();
    // As long as nothing is settled above an open event, the consumer's own ack floor tells as much.
    if (progress === undefined || (progress.open[0] ?? progress.top) >= progress.top) return;
    const text = JSON.stringify(progress);
    if (text === this.#saved) return;
    this.#saved = text;
    const ended = () => this.#stepsEnded();
    this.#steps = this.#update((record) => ({ ...record, progress })).then(ended, ended);
  }

  stop(): void {
    this.#ended = true;
    this.#isolation.end();
  }

  get #cause(): string {
    return `lane ${this.lane}`;
  }

  #step(): void {
    if (this.#steps !== undefined || this.#ended) return;
    if (!this.#hasWork()) return;
    this.#steps = this.#run().then(() => this.#stepsEnded());
  }

  #stepsEnded(): void {
    this.#steps = undefined;
    this.#step();
  }

  #hasWork(): boolean {
    if (this.#lapsed()) return false;
    if (this.#claim === undefined) return this.#wanted;
    return !this.#wanted || this.#broken || this.#phase !== "running";
  }

  async #run(): Promise<void> {
    try {
      if (this.#claim === undefined) {
        this.#phase = "claiming";
        this.#renewing = false;
        await this.#takeClaim();
      } else if (!this.#wanted) {
        this.#phase = "releasing";
        await this.#release();
        return;
      } else {
        this.#phase = "rewinding";
        this.#renewing = this.#tookUp;
        await this.#renewClaim();
      }
      if (this.#claim === undefined) this.#phase = "free";
      else if (!this.#lapsed()) await this.#takeUp();
    } catch (thrown) {
      this.#failed(thrown);
      await this.#waitToRetry();
    }
  }

  /** Compare-and-set of the lane's record to our name. Losing it is no failure: somebody else was faster. */
  async #takeClaim(): Promise<void> {
    const { host, previous, revision } = this.#judge(this.#known);
    this.#wanted = false;
    if (previous === "newer" || this.#lapsed()) return;
    if (
      previous?.owner !== undefined &&
      previous.owner !== this.#deadOwner &&
      previous.owner !== host.memberId()
    )
      return;
    const claim = await this.#writeClaim(previous, revision, this.#deadOwner);
    if (claim === undefined) return;
    this.#claim = claim;
    this.#tookUp = false;
    this.#wanted = true;
  }

  /** A new claim of our own lane: another epoch, and with it another consumer. */
  async #renewClaim(): Promise<void> {
    const { previous, revision, host } = await this.#previous();
    const current = this.#claim;
    if (current === undefined) return;
    const mine = previous !== undefined && previous !== "newer" && previous.owner === host.memberId();
    if (!mine || previous.nonce !== current.record.nonce) return this.fence(true);
    const progress = this.#renewing ? this.policy.memory.record() : undefined;
    const kept = without(previous, "cleanAt");
    const claim = await this.#writeClaim(
      progress === undefined ? kept : { ...kept, progress },
      revision,
      undefined,
    );
    if (claim === undefined) this.fence(true);
    else this.#claim = claim;
  }

  /** Of another life of stream or group, a record says nothing about this one. */
  #judge({ record, revision }: KnownClaim): Judged {
    const host = this.#host;
    const valid = record === "newer" || record?.incarnation === host.incarnation();
    return { previous: valid ? record : undefined, revision, host };
  }

  async #previous(): Promise<Judged> {
    const entry = await this.#host.bucket.read(this.#key);
    if (entry !== undefined) this.#host.seen(entry);
    const record = entry?.value === undefined ? undefined : parseClaim(entry.value);
    return this.#judge({ record, revision: entry?.revision ?? 0 });
  }

  async #writeClaim(
    previous: ClaimRecord | undefined,
    expected: number,
    deadOwner: string | undefined,
  ): Promise<Held | undefined> {
    const host = this.#host;
    const named = await host.takeover.newestEpoch(this.lane);
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

  /** Makes the lane's consumer ours, then starts a new run of deliveries. */
  async #takeUp(): Promise<void> {
    const host = this.#host;
    const runner = this.#runner;
    if (this.#claim === undefined || runner === undefined) return;
    this.#unfeed();
    const before = this.#claim.record;
    const base = await host.takeover.inspect(this.lane, before);
    const deaths =
      before.diedUnder === undefined ? before.deaths : recordDeath(before, before.diedUnder, base.inFlight);
    const frozen = host.frozenMembers();
    const convicted =
      before.diedUnder !== undefined && before.testing !== undefined && !frozen.has(before.diedUnder)
        ? [before.testing]
        : [];
    const poison = [...new Set([...(before.poison ?? []), ...convicted])];
    const rest = without(before, "diedUnder", "testing", "cleanAt");
    const judged = convicted.reduce((left, seq) => cleared(left, seq), deaths);
    const next: ClaimRecord = {
      ...rest,
      ...base.consumer,
      deaths: judged,
      ...(poison.length > 0 ? { poison } : {}),
    };
    await host.takeover.prepare(this.lane, next, base, () => this.#update(() => next));
    if (this.#claim === undefined || this.#lapsed() || this.#ended) return;
    const { record } = this.#claim;
    this.#broken = false;
    this.#tookUp = true;
    if (!this.#renewing) this.policy.memory.restore(record.progress);
    this.#saved = "";
    this.policy.begin({
      consumer: base.consumer.consumer,
      epoch: record.epoch,
      deliveries: base.deliveries,
      ackWaitMs: host.takeover.ackWaitMs,
      poison,
    });
    this.#isolation.begin(suspectsOf(record.deaths, frozen).filter((seq) => !poison.includes(seq)));
    runner.restart(base.consumer.consumer);
    host.feed.add(base.consumer.consumer);
    this.#phase = "running";
    host.health.clear(this.#cause);
    host.notify({
      type: this.#renewing ? "rewound" : "lane-claimed",
      lane: this.lane,
      seq: base.consumer.startSeq,
    });
  }

  /** Ends pulls, finishes what runs, confirms acks, and gives the claim back: clean when nothing is pending. */
  async #release(): Promise<void> {
    const { feed, drainMs, notify } = this.#host;
    const runner = this.#runner;
    const claim = this.#claim;
    if (claim === undefined || runner === undefined) return;
    const consumer = claim.record.consumer;
    runner.beginDrain();
    if (consumer !== undefined) await feed.drain([consumer], drainMs);
    runner.finishDrain();
    await runner.ended();
    // A handler that outlived its worker: whether its ack went out is not known, so the claim is left to lapse.
    if (this.#claim === undefined || this.#lapsed() || this.#ended) return;
    const clean = !this.#broken && runner.inFlight === 0 && (await runner.acksConfirmed());
    const progress = this.policy.memory.record();
    await this.#update((record) => ({
      ...without(record, "owner", "leaseMs", "cleanAt", "givenTo"),
      ...(progress === undefined ? {} : { progress }),
      ...(clean ? { cleanAt: this.policy.deliveries } : {}),
      ...(this.#givenTo === undefined ? {} : { givenTo: this.#givenTo }),
    }));
    this.policy.end();
    this.#isolation.end();
    this.#unfeed();
    runner.reset(false);
    this.#claim = undefined;
    this.#phase = "free";
    this.#broken = false;
    notify({ type: "lane-released", lane: this.lane });
  }

  #unfeed(): void {
    const consumer = this.#runner?.consumer;
    if (consumer !== undefined && consumer !== "") this.#host.feed.remove(consumer);
  }

  async #markTesting(seq: number | undefined): Promise<boolean> {
    try {
      await this.#update(({ testing, ...rest }) => {
        const deaths =
          seq === undefined && testing !== undefined ? cleared(rest.deaths, testing) : rest.deaths;
        return seq === undefined ? { ...rest, deaths } : { ...rest, deaths, testing: seq };
      });
      return this.#claim?.record.testing === seq;
    } catch {
      return false;
    }
  }

  /** Changes our claim's record; fences the lane when it is not ours any more. Rejects when nothing is known. */
  async #update(change: (record: ClaimRecord) => ClaimRecord): Promise<void> {
    const { bucket } = this.#host;
    for (let attempt = 0; attempt < 5; attempt++) {
      const claim = this.#claim;
      if (claim === undefined) return;
      const record = change(claim.record);
      const text = formatClaim(record);
      const outcome = await bucket.write(this.#key, text, claim.revision);
      if (outcome.type === "written") {
        if (this.#claim === claim) this.#claim = { record, revision: outcome.revision };
        return;
      }
      const entry = await bucket.read(this.#key);
      // Another update of ours came in between; this one is made on top of it.
      if (this.#claim !== claim) continue;
      if (entry?.value === text) {
        this.#claim = { record, revision: entry.revision };
        return;
      }
      const found = entry?.value === undefined ? undefined : parseClaim(entry.value);
      const mine = found !== undefined && found !== "newer" && found.nonce === claim.record.nonce;
      if (entry === undefined || !mine || found.owner !== this.#host.memberId()) return this.fence(true);
      this.#claim = { record: { ...found, epoch: claim.record.epoch }, revision: entry.revision };
    }
    throw new LanekeeperError("REQUEST_TIMEOUT", `the claim of lane ${this.lane} could not be written`);
  }

  #failed(thrown: unknown): void {
    const error = LanekeeperError.is(thrown)
      ? thrown
      : new LanekeeperError("API_ERROR", `lane ${this.lane}: ${describeThrown(thrown)}`, { cause: thrown });
    this.#host.health.fault(this.#cause, error, 3_000);
    if (this.#claim !== undefined) this.#broken = true;
  }

  #waitToRetry(): Promise<void> {
    return new Promise((resolve) => {
      this.#host.clock.after(retryMs, resolve);
    });
  }

  #lapsed(): boolean {
    const { clock } = this.#host;
    return this.#host.lease().lapsed(clock.now(), clock.wall());
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
