import { type ClaimRecord, without } from "../domain/claim-record.js";
import { cleared, recordDeath, suspectsOf, verdict } from "../domain/crash-suspects.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { describeThrown } from "../domain/thrown.js";
import type { BucketEntry } from "./bucket-port.js";
import type { Clock } from "./clock.js";
import type { Health } from "./health.js";
import { Isolation, type SuspectTurns } from "./isolation.js";
import { type ClaimHost, type KnownClaim, LaneClaim } from "./lane-claim.js";
import type { LaneFeed } from "./lane-feed-port.js";
import type { LaneRunner } from "./lane-runner.js";
import type { LaneTakeover } from "./lane-takeover.js";
import type { Notify } from "./notifier.js";
import { OwnedPolicy } from "./owned-policy.js";

/** What the lanes of one owned worker share. */
export interface OwnedHost extends ClaimHost {
  readonly clock: Clock;
  readonly feed: LaneFeed;
  readonly takeover: LaneTakeover;
  readonly turns: SuspectTurns;
  readonly notify: Notify;
  readonly health: Health;
  readonly drainMs: number;
  /** Members called dead that were only frozen: their deaths do not count. */
  frozenMembers(): ReadonlySet<string>;
}

type Phase = "free" | "claiming" | "running" | "rewinding" | "releasing";

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
  readonly #claim: LaneClaim;
  readonly #isolation: Isolation;
  #runner: LaneRunner | undefined;
  #phase: Phase = "free";
  #wanted = false;
  /** Asked to give the lane back, perhaps while it was being claimed. */
  #givingBack = false;
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
    this.#host = host;
    this.#claim = new LaneClaim(lane, key, host, () => this.#lost());
    this.#isolation = new Isolation(host.turns, (seq, harmless) => this.#markTesting(seq, harmless));
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
    return this.#claim.record !== undefined;
  }

  get running(): boolean {
    return this.#phase === "running" && !this.#broken;
  }

  get busy(): boolean {
    return this.#steps !== undefined;
  }

  /** Unlike a lane that is given back, which can wait for its handlers for as long as they take. */
  get takingUp(): boolean {
    return this.busy && this.#phase !== "releasing";
  }

  /** Whether the lane is this worker's, and this is its consumer (O6). */
  pulls(consumer: string): boolean {
    return this.running && this.#runner?.consumer === consumer && !this.#lapsed();
  }

  /** The lane is to be this worker's. `deadOwner`: whose claim it takes over; `known`: the claim as it was last seen. */
  want(deadOwner: string | undefined, known: KnownClaim): void {
    this.#wanted = true;
    this.#givingBack = false;
    this.#deadOwner = deadOwner;
    this.#known = known;
    this.#step();
  }

  /** The lane is to be given back: to `member`, or to anybody. Resolves when it is. */
  async giveBack(member: string | undefined): Promise<void> {
    this.#wanted = false;
    this.#givingBack = true;
    this.#givenTo = member;
    this.#step();
    while (this.#steps !== undefined) await this.#steps;
  }

  /** The unbroken run of deliveries has ended, or may have (O5): nothing starts until the lane is rewound. */
  breakRun(): void {
    if (this.#claim.record === undefined || this.#broken) return;
    this.#broken = true;
    this.policy.end();
    this.#step();
  }

  /** The lease is over, or (`lost`) the claim another's: what runs is aborted, and nothing is sent any more. */
  fence(lost: boolean): void {
    if (this.#claim.record === undefined) return;
    if (lost) {
      this.#claim.drop();
      this.#lost();
    } else {
      this.#stopRunning();
      this.#broken = true;
    }
  }

  /** The lease holds again: goes on where it stopped, if the claim is still ours. */
  resume(): void {
    this.#step();
  }

  /** Another revision of the claim was seen. While a step is under way, the step will see it. */
  observed(entry: BucketEntry): void {
    if (this.#steps === undefined) this.#claim.observed(entry);
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
    this.#steps = this.#claim.update((record) => ({ ...record, progress })).then(ended, ended);
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
    if (this.#claim.record === undefined) return this.#wanted;
    return !this.#wanted || this.#broken || this.#phase !== "running";
  }

  async #run(): Promise<void> {
    try {
      if (this.#claim.record === undefined) {
        this.#phase = "claiming";
        this.#renewing = false;
        this.#tookUp = false;
        this.#wanted = false;
        await this.#claim.take(this.#known, this.#deadOwner);
        this.#wanted = this.#claim.record !== undefined && !this.#givingBack;
      } else if (!this.#wanted) {
        this.#phase = "releasing";
        await this.#release();
        return;
      } else {
        this.#phase = "rewinding";
        this.#renewing = this.#tookUp;
        await this.#claim.renew(this.#renewing ? this.policy.memory.record() : undefined);
      }
      if (this.#claim.record === undefined) this.#phase = "free";
      else if (!this.#lapsed()) await this.#takeUp();
    } catch (thrown) {
      this.#failed(thrown);
      await this.#waitToRetry();
    }
  }

  /** Makes the lane's consumer ours, then starts a new run of deliveries. */
  async #takeUp(): Promise<void> {
    const host = this.#host;
    const runner = this.#runner;
    const before = this.#claim.record;
    if (before === undefined || runner === undefined) return;
    this.#unfeed();
    const base = await host.takeover.inspect(this.lane, before);
    const deaths =
      before.diedUnder === undefined ? before.deaths : recordDeath(before, before.diedUnder, base.inFlight);
    const frozen = host.frozenMembers();
    const crashed = before.diedUnder !== undefined && !frozen.has(before.diedUnder);
    const { convicted, tried } = verdict(before.tried ?? [], crashed ? before.testing : undefined);
    const poison = [...new Set([...(before.poison ?? []), ...convicted])];
    const rest = without(before, "diedUnder", "testing", "cleanAt");
    const judged = convicted.reduce((left, seq) => cleared(left, seq), deaths);
    const next: ClaimRecord = {
      ...rest,
      ...base.consumer,
      deaths: judged,
      tried,
      ...(poison.length > 0 ? { poison } : {}),
    };
    await host.takeover.prepare(this.lane, next, base, async () => {
      await this.#claim.update(() => next);
      this.#refuseLost();
    });
    const { record } = this.#claim;
    if (record === undefined || this.#lapsed() || this.#ended) return;
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
    if (this.#claim.record === undefined || runner === undefined) return;
    const { consumer } = this.#claim.record;
    runner.beginDrain();
    if (consumer !== undefined) await feed.drain([consumer], drainMs);
    runner.finishDrain();
    await runner.ended();
    // A handler that outlived its worker: whether its ack went out is not known, so the claim is left to lapse.
    if (this.#claim.record === undefined || this.#lapsed() || this.#ended) return;
    const clean = !this.#broken && runner.inFlight === 0 && (await runner.acksConfirmed());
    const progress = this.#tookUp ? this.policy.memory.record() : undefined;
    await this.#claim.update((record) => ({
      ...without(record, "owner", "leaseMs", "cleanAt", "givenTo"),
      ...(progress === undefined ? {} : { progress }),
      ...(clean ? { cleanAt: this.policy.deliveries } : {}),
      ...(this.#givenTo === undefined ? {} : { givenTo: this.#givenTo }),
    }));
    if (this.#claim.record === undefined) return;
    this.#stopRunning();
    this.#claim.drop();
    this.#phase = "free";
    this.#broken = false;
    this.#host.health.clear(this.#cause);
    notify({ type: "lane-released", lane: this.lane });
  }

  /** The claim is another's. */
  #lost(): void {
    this.#stopRunning();
    this.#phase = "free";
    this.#broken = false;
    this.#wanted = false;
    this.#host.health.clear(this.#cause);
    this.#host.notify({ type: "lane-released", lane: this.lane });
  }

  /** Nothing that comes is looked at, and nothing in hand is ours. */
  #stopRunning(): void {
    this.policy.end();
    this.#isolation.end();
    this.#unfeed();
    this.#runner?.reset(false);
  }

  #unfeed(): void {
    const consumer = this.#runner?.consumer;
    if (consumer !== undefined && consumer !== "") this.#host.feed.remove(consumer);
  }

  async #markTesting(seq: number | undefined, harmless = true): Promise<boolean> {
    try {
      await this.#claim.update(({ testing, ...rest }) => {
        if (seq !== undefined) return { ...rest, testing: seq };
        if (testing === undefined || !harmless) return rest;
        const tried = (rest.tried ?? []).filter((one) => one !== testing);
        return { ...rest, deaths: cleared(rest.deaths, testing), tried };
      });
      if (this.#claim.record?.testing === seq) return true;
    } catch {
      // Whether it was written is not known.
    }
    // The suspect waits for its turn and holds it; a rewind begins anew.
    this.breakRun();
    return false;
  }

  /** O6: what comes next in a step would hit the consumer of a newer owner. */
  #refuseLost(): void {
    if (this.#claim.record !== undefined && !this.#lapsed() && !this.#ended) return;
    throw new LanekeeperError("FENCED", `the claim of lane ${this.lane} was lost, or its lease is over`);
  }

  #failed(thrown: unknown): void {
    // Without a claim the lane is another's to mend; that the bucket cannot be reached shows in the lease.
    if (this.#claim.record === undefined) return;
    const error = LanekeeperError.is(thrown)
      ? thrown
      : new LanekeeperError("API_ERROR", `lane ${this.lane}: ${describeThrown(thrown)}`, { cause: thrown });
    this.#host.health.fault(this.#cause, error, 3_000);
    this.#broken = true;
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
