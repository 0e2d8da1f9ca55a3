import { type LaneLayout, laneFilter } from "@lanekeeper/partitioner";
import { laneConsumerName } from "../domain/group-name.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Assignment, GroupStart } from "../domain/worker-options.js";
import { eachAtOnce } from "./each-at-once.js";
import type { LaneConsumerPort, LaneConsumerState } from "./lane-consumer-port.js";
import { type LaneView, settledBelow } from "./lane-view.js";
import type { StreamPort, StreamSnapshot } from "./stream-port.js";

/** Requests at once while looking at or making a group's consumers. */
const atOnce = 16;

/** How often a consumer without a leader is asked for; each time takes as long as a request may. */
const readAttempts = 3;
const leaderlessCodes: ReadonlySet<string> = new Set(["REQUEST_TIMEOUT", "JETSTREAM_UNAVAILABLE"]);
const sharedConsumer = { assignment: "shared", maxAckPending: 1 } as const;

/** What one group wants of its consumers. */
export interface GroupWish {
  readonly group: string;
  readonly assignment: Assignment;
  readonly start: GroupStart;
  readonly ackWaitMs: number;
}

/** A group whose consumers all exist and fit. */
export interface ReadyGroup {
  readonly incarnation: string;
  readonly startSeq: number;
  /** By lane. Their ackWaitMs is the one in force, which can be longer than the wish. */
  readonly lanes: readonly LaneConsumerState[];
  /** Whether this call made the group. */
  readonly created: boolean;
}

/**
 * The consumers of groups: one durable per lane. Lane 0's consumer decides where a new group starts and which
 * incarnation it is, so that workers that start at the same moment agree; it is made first, and making is strict.
 */
export class GroupConsumers {
  readonly #layout: LaneLayout;
  readonly #consumers: LaneConsumerPort;
  readonly #stream: StreamPort;
  readonly #newId: () => string;

  /** `newId`: unique among all processes. */
  constructor(layout: LaneLayout, consumers: LaneConsumerPort, stream: StreamPort, newId: () => string) {
    this.#layout = layout;
    this.#consumers = consumers;
    this.#stream = stream;
    this.#newId = newId;
  }

  name(group: string, lane: number): string {
    return laneConsumerName(group, this.#layout.generation, lane);
  }

  filter(lane: number): string {
    return laneFilter(this.#layout, lane);
  }

  readLane(group: string, lane: number): Promise<LaneConsumerState | undefined> {
    return this.#consumers.read(this.name(group, lane), this.filter(lane), sharedConsumer);
  }

  /** A consumer of this lane, whichever assignment it was made for. */
  readAny(name: string, lane: number): Promise<LaneConsumerState | undefined> {
    return this.#consumers.read(name, this.filter(lane), { assignment: "owned", maxAckPending: undefined });
  }

  /** Rejects with CONSUMER_DIFFERS when the consumer of one of these lanes exists and does not fit. */
  async refuseChanged(group: string, lanes: readonly number[]): Promise<void> {
    refuseDifferent(await eachAtOnce(lanes, atOnce, (lane) => this.readLane(group, lane)));
  }

  /** Every lane's consumer as it is now. */
  read(group: string): Promise<(LaneConsumerState | undefined)[]> {
    return this.eachLane((lane) => this.readLane(group, lane));
  }

  /** Finds the group's consumers and makes those that are missing. Rejects with CONSUMER_DIFFERS when one does not fit. */
  async ensure(wish: GroupWish, snapshot: StreamSnapshot): Promise<ReadyGroup> {
    const found = await this.eachLane((lane) => this.#readPatiently(wish.group, lane));
    refuseDifferent(found);
    const known = found.find((state) => state?.incarnation !== undefined);
    const start = known?.groupStartSeq ?? (await this.resolveStart(wish.start, snapshot));
    const incarnation = known?.incarnation ?? this.#newIncarnation(snapshot);
    const first = await this.#ensureLane(wish, 0, found[0], { start, incarnation }, snapshot);
    const agreed = { start: first.groupStartSeq, incarnation: first.incarnation ?? incarnation };
    refuseInterruptedRewind(wish.group, agreed.incarnation, found);
    const lanes = await this.eachLane(async (lane) =>
      lane === 0 ? first : this.#ensureLane(wish, lane, found[lane], agreed, snapshot),
    );
    return { incarnation: agreed.incarnation, startSeq: agreed.start, lanes, created: known === undefined };
  }

  /**
   * Makes the consumers of a group whose lanes had owners, each from where its lane stopped, and deletes the owners' ones.
   * What is there from an interrupted run is kept: nobody has worked on it.
   */
  async continueFrom(wish: GroupWish, views: readonly LaneView[], snapshot: StreamSnapshot): Promise<void> {
    const agreed = { start: views[0]?.startSeq ?? 1, incarnation: this.#newIncarnation(snapshot) };
    const known = await this.readLane(wish.group, 0);
    if (known?.incarnation !== undefined) agreed.incarnation = known.incarnation;
    await this.eachLane(async (lane) => {
      const view = views[lane];
      const fromSeq = view === undefined ? agreed.start : settledBelow(view);
      // The filters of a work queue may not overlap; with interest retention the new consumer has to come first.
      const ownedFirst = snapshot.retention === "workqueue";
      if (ownedFirst && view?.state !== undefined) await this.#consumers.delete(view.state.name);
      await this.#createLane(wish, lane, agreed, snapshot, fromSeq);
      if (!ownedFirst && view?.state !== undefined) await this.#consumers.delete(view.state.name);
    });
  }

  /** Makes one lane's lost consumer again, to go on at `fromSeq`. */
  async remake(
    wish: GroupWish,
    lane: number,
    group: ReadyGroup,
    fromSeq: number,
    snapshot: StreamSnapshot,
  ): Promise<LaneConsumerState> {
    const { startSeq: start, incarnation } = group;
    return this.#ensureLane(wish, lane, undefined, { start, incarnation }, snapshot, fromSeq);
  }

  /** Starts the group over for all lanes, under a new incarnation. Nobody may be working on it. */
  async rewind(group: string, to: GroupStart, snapshot: StreamSnapshot, ackWaitMs: number): Promise<void> {
    const start = await this.resolveStart(to, snapshot);
    const agreed = { start, incarnation: this.#newIncarnation(snapshot) };
    const wish: GroupWish = { group, assignment: "shared", start: to, ackWaitMs };
    // Lane 0 first: it says which incarnation is the group's, and workers refuse to start until all lanes have it.
    await this.#replaceLane(wish, 0, agreed, snapshot);
    await this.eachLane(async (lane) => {
      if (lane !== 0) await this.#replaceLane(wish, lane, agreed, snapshot);
    });
  }

  async delete(group: string): Promise<void> {
    const ours = (await this.#consumers.list()).filter((one) => one.group === group);
    await eachAtOnce(ours, atOnce, ({ name }) => this.#consumers.delete(name));
  }

  async groups(): Promise<string[]> {
    return [...new Set((await this.#consumers.list()).map(({ group }) => group))].sort();
  }

  async #ensureLane(
    wish: GroupWish,
    lane: number,
    found: LaneConsumerState | undefined,
    agreed: { start: number; incarnation: string },
    snapshot: StreamSnapshot,
    fromSeq = agreed.start,
  ): Promise<LaneConsumerState> {
    if (found !== undefined) return this.#withAckWait(wish, found);
    await this.#createLane(wish, lane, agreed, snapshot, fromSeq);
    const made = await this.#readPatiently(wish.group, lane);
    if (made === undefined) {
      const name = this.name(wish.group, lane);
      throw new LanekeeperError(
        "CONSUMER_NOT_FOUND",
        `consumer ${name} vanished while it was made; try again`,
      );
    }
    refuseDifferent([made]);
    return this.#withAckWait(wish, made);
  }

  /** A consumer that was made just now on a replicated stream has no leader yet, and nobody answers for it. */
  async #readPatiently(group: string, lane: number): Promise<LaneConsumerState | undefined> {
    return this.#patiently(() => this.readLane(group, lane));
  }

  async #patiently<T>(ask: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await ask();
      } catch (error) {
        const leaderless = LanekeeperError.is(error) && leaderlessCodes.has(error.code);
        if (!leaderless || attempt === readAttempts) throw error;
      }
    }
  }

  async #replaceLane(
    wish: GroupWish,
    lane: number,
    agreed: { start: number; incarnation: string },
    snapshot: StreamSnapshot,
  ): Promise<void> {
    await this.#consumers.delete(this.name(wish.group, lane));
    await this.#createLane(wish, lane, agreed, snapshot, agreed.start);
  }

  async #createLane(
    wish: GroupWish,
    lane: number,
    agreed: { start: number; incarnation: string },
    snapshot: StreamSnapshot,
    fromSeq: number,
  ): Promise<void> {
    const spec = {
      name: this.name(wish.group, lane),
      group: wish.group,
      assignment: wish.assignment,
      generation: this.#layout.generation,
      lane,
      filter: this.filter(lane),
      // A work queue holds what nobody has settled and nothing else: it is always read from its start.
      startSeq: snapshot.retention === "workqueue" ? 1 : fromSeq,
      groupStartSeq: agreed.start,
      incarnation: agreed.incarnation,
      ackWaitMs: wish.ackWaitMs,
      maxAckPending: 1,
    };
    // One whose answer did not come may have been made: making it again is then no other consumer.
    await this.#patiently(() => this.#consumers.create(spec));
  }

  /**
   * A longer ackWait is applied at once: workers that count on the shorter one are only more careful than they need be.
   * A shorter one waits until nobody pulls, or a worker that counts on the longer one could overlap (O2).
   */
  async #withAckWait(wish: GroupWish, found: LaneConsumerState): Promise<LaneConsumerState> {
    const { ackWaitMs } = wish;
    const idle = found.waiting === 0 && found.inFlight === 0;
    if (ackWaitMs === found.ackWaitMs || (ackWaitMs < found.ackWaitMs && !idle)) return found;
    await this.#consumers.update(found.name, { ackWaitMs, maxAckPending: 1 });
    return { ...found, ackWaitMs };
  }

  /** The first sequence of a group that starts so. Rejects with INVALID_OPTIONS where retention rules it out. */
  async resolveStart(start: GroupStart, snapshot: StreamSnapshot): Promise<number> {
    if (start === "all") return 1;
    if (snapshot.retention === "workqueue") {
      const message =
        'deliverPolicy must be "all" on a work-queue stream: it holds only what nobody has handled';
      throw new LanekeeperError("INVALID_OPTIONS", message);
    }
    if (start === "new") return snapshot.lastSeq + 1;
    if ("startTime" in start) return this.#stream.sequenceAt(start.startTime);
    // nats-server 2.10 moves a start beyond the end to the end of that moment, for each consumer as it is made: lanes
    // made later would skip events (O4).
    return Math.min(start.startSeq, snapshot.lastSeq + 1);
  }

  /** Bound to the stream's creation time: a stream made anew is another incarnation of every group. */
  #newIncarnation(snapshot: StreamSnapshot): string {
    return `${snapshot.created}/${this.#newId().slice(0, 8)}`;
  }

  /** Runs once per lane, a bounded number at once. */
  eachLane<T>(run: (lane: number) => Promise<T>): Promise<T[]> {
    return eachAtOnce(
      Array.from({ length: this.#layout.lanes }, (_, lane) => lane),
      atOnce,
      run,
    );
  }
}

/** Lanes of two incarnations: a rewind did not come to its end, and some lanes would be read from the wrong place. */
function refuseInterruptedRewind(
  group: string,
  incarnation: string,
  states: readonly (LaneConsumerState | undefined)[],
): void {
  const old = states.filter((state) => state !== undefined && state.incarnation !== incarnation);
  if (old.length === 0) return;
  throw new LanekeeperError(
    "REWIND_INTERRUPTED",
    `a rewind of group ${group} was interrupted: ${old.length} of its consumers are still the old ones; rewind it again`,
  );
}

function refuseDifferent(states: readonly (LaneConsumerState | undefined)[]): void {
  const faults = states.flatMap((state) =>
    state === undefined || state.differences.length === 0
      ? []
      : [`${state.name}: ${state.differences.join(", ")}`],
  );
  if (faults.length === 0) return;
  const more = faults.length > 3 ? `; and ${faults.length - 3} more` : "";
  throw new LanekeeperError(
    "CONSUMER_DIFFERS",
    `${faults.length} consumer(s) of the group are not as a lane needs them: ${faults.slice(0, 3).join("; ")}${more}. ` +
      "Restore these settings, or delete the consumers: they are made again, from where the group started",
  );
}
