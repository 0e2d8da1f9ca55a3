import { bucketKeys } from "../domain/bucket-keys.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Lease, LeaseRules } from "../domain/lease.js";
import type { PullTrouble } from "../domain/pull-state.js";
import { describeThrown } from "../domain/thrown.js";
import type { BucketEntry, BucketPort } from "./bucket-port.js";
import { pause, type Timer } from "./clock.js";
import type { GroupConsumers } from "./group-consumers.js";
import { SuspectTurns } from "./isolation.js";
import type { LaneConsumerPort, LaneConsumerState } from "./lane-consumer-port.js";
import { LaneRunner } from "./lane-runner.js";
import type { LaneSet, WorkerHost } from "./lane-set.js";
import { LaneTakeover } from "./lane-takeover.js";
import type { LanesContext } from "./lanes-context.js";
import { reportSkipped } from "./loss-report.js";
import { LossWatch } from "./loss-watch.js";
import { OwnedGroup } from "./owned-group.js";
import { OwnedLane } from "./owned-lane.js";
import { groupWish, refuseSharedWorkers } from "./owned-start.js";
import { patiently } from "./patience.js";
import type { StreamSnapshot } from "./stream-port.js";

export interface OwnedLanesParts {
  readonly context: LanesContext;
  readonly consumers: GroupConsumers;
  readonly consumerPort: LaneConsumerPort;
  readonly bucket: BucketPort;
  readonly rules: LeaseRules;
  readonly snapshot: StreamSnapshot;
  readonly newId: () => string;
}

/**
 * Lanes taken up at once. On a replicated stream a consumer is made by consensus (60 ms, and they queue up): more of them
 * would wait longer than a request may take (ADR 0014).
 */
const stepsAtOnce = { single: 256, replicated: 64 };
/** Changes of the group are looked at together. */
const planMs = 20;
const sweepMs = 60_000;
const drainMs = 2_000;
/** How long the first owners of a group on an interest stream may take to make every lane's consumer. */
const firstLanesMs = 30_000;

/** The lanes this worker owns: claims those that are its share, gives back those that are another's. */
export class OwnedLanes implements LaneSet {
  readonly runners: readonly LaneRunner[];
  readonly #parts: OwnedLanesParts;
  readonly #host: WorkerHost;
  readonly #group: OwnedGroup;
  readonly #lanes: readonly OwnedLane[];
  readonly #takeover: LaneTakeover;
  readonly #givingBack = new Set<number>();
  readonly #byConsumer = new Map<string, LaneRunner>();
  readonly #loss: LossWatch;
  #created: string;
  #planTimer: Timer | undefined;
  #fenced = false;
  #startingOver = false;
  #closing = false;
  #ended = false;
  #sweptAt: number;

  constructor(parts: OwnedLanesParts, host: WorkerHost) {
    this.#parts = parts;
    this.#host = host;
    const { context, bucket, rules, snapshot, newId, consumerPort } = parts;
    const { layout, clock } = context;
    const { options } = host;
    this.#created = snapshot.created;
    this.#sweptAt = clock.now();
    this.#group = new OwnedGroup({
      group: options.group,
      generation: layout.generation,
      lanes: layout.lanes,
      workerName: options.name,
      rules,
      bucket,
      clock,
      closing: context.closing,
      newId,
      observer: {
        changed: () => this.#planSoon(),
        claimSeen: (lane, entry) => this.#lanes[lane]?.observed(entry),
        beaten: () => this.#beaten(),
        regrouped: () => this.#regrouped(),
        deposed: () => this.#deposed(),
      },
    });
    this.#takeover = new LaneTakeover({
      layout,
      group: options.group,
      consumers: consumerPort,
      stream: context.streamPort,
      ackWaitMs: options.ackWaitMs,
      maxAckPending: options.maxAckPending,
      retention: snapshot.retention,
      current: () => ({ ...this.#group.record, from: this.#group.record.from }),
    });
    const shared = {
      clock,
      bucket,
      feed: host.feed,
      takeover: this.#takeover,
      turns: new SuspectTurns(),
      notify: host.notify,
      health: host.health,
      newNonce: newId,
      drainMs,
      memberId: () => this.#group.memberId,
      lease: (): Lease => this.#group.lease,
      incarnation: () => this.#group.record.incarnation,
      frozenMembers: () => this.#group.view.frozen(),
      newestEpoch: (lane: number) => this.#takeover.newestEpoch(lane),
      seen: (entry: BucketEntry) => this.#group.seen(entry),
    };
    this.#lanes = Array.from({ length: layout.lanes }, (_, lane) => {
      return new OwnedLane(lane, bucketKeys.lane(options.group, layout.generation, lane), shared);
    });
    this.#loss = new LossWatch(
      context.streamPort,
      {
        read: () => parts.consumers.eachLane((lane) => this.#watched(lane)),
        filter: (lane) => parts.consumers.filter(lane),
      },
      host.notify,
    );
    this.runners = this.#lanes.map((lane) => {
      const runner = new LaneRunner(lane.lane, lane.policy, host);
      lane.attach(runner);
      return runner;
    });
  }

  /** Resolves once this worker is a live member of its group. */
  async join(): Promise<void> {
    const { context, consumerPort } = this.#parts;
    const { options } = this.#host;
    await patiently(context.clock, () => refuseSharedWorkers(consumerPort, options.group, context.clock), {
      signal: context.closing,
    });
    const { snapshot } = this.#parts;
    const first = await this.#agree(snapshot);
    const { from, startSeq } = this.#group.record;
    if (first && from === undefined) reportSkipped(startSeq, snapshot, this.#host.notify);
    await this.#group.join();
    this.#planSoon();
    if (snapshot.retention === "interest") await this.#everyLaneStored();
    void context.watch.look();
  }

  runnerOf(consumer: string): LaneRunner | undefined {
    // Asked for every event; a name that is not known yet is that of a lane's newest consumer.
    const known = this.#byConsumer.get(consumer);
    if (known !== undefined) return known;
    const lane = /-g\d+-(\d+)(?:-e\d+)?$/.exec(consumer)?.[1];
    const runner = lane === undefined ? undefined : this.runners[Number(lane)];
    if (this.#byConsumer.size > 2 * this.runners.length) this.#byConsumer.clear();
    if (runner !== undefined) this.#byConsumer.set(consumer, runner);
    return runner;
  }

  lanes(): number[] {
    return this.#lanes.flatMap((lane) => (lane.running ? [lane.lane] : []));
  }

  incarnation(): string {
    return this.#group.record.incarnation;
  }

  /** Whatever the trouble is, deliveries may be lost: the lane is rewound, which looks at claim and consumer (O5). */
  trouble(runner: LaneRunner, kind: PullTrouble, text: string): void {
    if (kind === "refused") {
      const where = `lane ${runner.lane} (consumer ${runner.consumer})`;
      const error = new LanekeeperError("API_ERROR", `${where}: pull requests are refused: ${text}`);
      this.#host.health.fault(runner.consumer, error, 3_000);
      return;
    }
    this.#host.health.clear(runner.consumer);
    this.#lanes[runner.lane]?.breakRun();
  }

  reconnected(): void {
    for (const lane of this.#lanes) lane.breakRun();
  }

  streamSeen(snapshot: StreamSnapshot): void {
    if (this.#startingOver) return;
    if (snapshot.created === this.#created) {
      void this.#loss.look(snapshot);
      return;
    }
    this.#startingOver = true;
    void this.#startOver(snapshot).finally(() => {
      this.#startingOver = false;
    });
  }

  tick(now: number, wall: number): void {
    if (this.#group.lease.lapsed(now, wall)) this.#fence();
    for (const lane of this.#lanes) lane.tick(now);
    if (now - this.#sweptAt >= sweepMs) {
      this.#sweptAt = now;
      void this.#sweep();
    }
  }

  async giveBack(): Promise<void> {
    this.#closing = true;
    this.#planTimer?.stop();
    await this.#group.leave().catch(() => {});
    await Promise.all(this.#lanes.map((lane) => lane.giveBack(undefined)));
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#planTimer?.stop();
    for (const lane of this.#lanes) lane.stop();
    // A lane whose handler still runs is left to lapse, never released: so the member has to be found dead.
    await this.#group.end(this.#lanes.every((lane) => !lane.held));
  }

  /** The consumer of a lane of ours; others watch theirs. */
  async #watched(lane: number): Promise<LaneConsumerState | undefined> {
    const consumer = this.runners[lane]?.consumer ?? "";
    if (this.#lanes[lane]?.running !== true || consumer === "") return undefined;
    return this.#parts.consumers.readAny(consumer, lane);
  }

  async #agree(snapshot: StreamSnapshot, start = this.#host.options.deliverPolicy): Promise<boolean> {
    const { consumerPort, consumers, newId } = this.#parts;
    const { group } = this.#host.options;
    const wish = () => groupWish(consumerPort, consumers, { group, start }, snapshot, newId);
    return this.#group.agree(wish, snapshot.created);
  }

  /** With interest retention an event of a lane without a consumer is dropped at once: nobody is to publish before (O4). */
  async #everyLaneStored(): Promise<void> {
    const { clock } = this.#host;
    const deadline = clock.now() + firstLanesMs;
    while (!this.#ended && !this.#group.view.everyLaneHasConsumer(this.incarnation())) {
      if (clock.now() >= deadline) {
        const text = `not every lane has a consumer after ${firstLanesMs} ms; try again`;
        throw new LanekeeperError("REQUEST_TIMEOUT", text);
      }
      await pause(clock, 20);
    }
  }

  #planSoon(): void {
    if (this.#planTimer !== undefined || this.#ended) return;
    this.#planTimer = this.#host.clock.after(planMs, () => {
      this.#planTimer = undefined;
      this.#plan();
    });
  }

  #plan(): void {
    if (this.#closing || this.#ended || this.#startingOver) return;
    const { clock } = this.#host;
    const now = clock.now();
    if (this.#group.lease.lapsed(now, clock.wall())) return;
    const { view, memberId, record } = this.#group;
    const { claim, mine, giveBack } = view.plan(memberId, record.incarnation, now);
    // A claim of ours that we do not know of: its write timed out and came through all the same.
    const unknown = mine.map((lane) => ({ lane, deadOwner: undefined }));
    const { snapshot, bucket } = this.#parts;
    const most =
      Math.max(snapshot.replicas, bucket.replicas) > 1 ? stepsAtOnce.replicated : stepsAtOnce.single;
    let steps = this.#lanes.filter((lane) => lane.takingUp).length;
    for (const { lane, deadOwner } of [...unknown, ...claim]) {
      const owned = this.#lanes[lane];
      if (owned === undefined || owned.held || owned.busy || steps >= most) continue;
      steps++;
      owned.want(deadOwner, view.claimOf(lane) ?? { record: undefined, revision: 0 });
    }
    for (const { lane, to } of giveBack) {
      const owned = this.#lanes[lane];
      if (owned === undefined || !owned.held || this.#givingBack.has(lane)) continue;
      this.#givingBack.add(lane);
      void owned.giveBack(to).finally(() => {
        this.#givingBack.delete(lane);
        this.#planSoon();
      });
    }
  }

  #fence(): void {
    if (this.#fenced) return;
    this.#fenced = true;
    const text = "no beat was confirmed within the lease; nothing is handled until one is";
    this.#host.health.fault("lease", new LanekeeperError("FENCED", text));
    for (const lane of this.#lanes) lane.fence(false);
  }

  #beaten(): void {
    if (!this.#fenced) return;
    this.#fenced = false;
    this.#host.health.clear("lease");
    for (const lane of this.#lanes) lane.resume();
    this.#planSoon();
  }

  #deposed(): void {
    for (const lane of this.#lanes) lane.fence(true);
    this.#fenced = true;
    const text = "the other workers had seen no beat of this one for a full lease and took its lanes";
    this.#host.health.fault("lease", new LanekeeperError("FENCED", text), 3_000);
  }

  /** Claims, progress and consumers of another incarnation say nothing about this one. */
  #regrouped(): void {
    for (const lane of this.#lanes) {
      lane.fence(true);
      lane.policy.memory.clear();
    }
    this.#takeover.forget();
    this.#planSoon();
  }

  /** The stream was deleted and made again: claims, progress and consumers of the old one say nothing about it. */
  async #startOver(snapshot: StreamSnapshot): Promise<void> {
    this.#regrouped();
    try {
      // O4: the new stream is the group's from its first event on, wherever it started in the old one.
      await this.#agree(snapshot, "all");
      this.#created = snapshot.created;
      this.#host.health.clear("start-over");
      const text = "the stream was deleted and made again; work starts at its first event";
      this.#host.notify({ type: "rewound", error: new LanekeeperError("STREAM_NOT_FOUND", text) });
    } catch (thrown) {
      const error = LanekeeperError.is(thrown)
        ? thrown
        : new LanekeeperError("API_ERROR", `starting over: ${describeThrown(thrown)}`, { cause: thrown });
      this.#host.health.fault("start-over", error, 3_000);
    } finally {
      this.#planSoon();
    }
  }

  /** Consumers that an interrupted takeover left behind. */
  async #sweep(): Promise<void> {
    this.#takeover.forget();
    for (const lane of this.#lanes) {
      const { consumer } = this.runners[lane.lane] ?? { consumer: "" };
      if (!lane.running || consumer === "") continue;
      try {
        await this.#takeover.sweep(lane.lane, consumer, () => lane.pulls(consumer));
      } catch {
        return;
      }
    }
  }
}
