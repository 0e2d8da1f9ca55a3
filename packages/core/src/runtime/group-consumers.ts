import { randomUUID } from "node:crypto";
import { type LaneLayout, laneFilter } from "@lanekeeper/partitioner";
import PQueue from "p-queue";
import { laneConsumerName } from "../domain/group-name.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Assignment, GroupStart } from "../domain/worker-options.js";
import type { LaneConsumerPort, LaneConsumerState } from "./lane-consumer-port.js";
import type { StreamPort, StreamSnapshot } from "./stream-port.js";

/** Requests at once while looking at or making a group's consumers. */
const atOnce = 16;

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

  constructor(layout: LaneLayout, consumers: LaneConsumerPort, stream: StreamPort) {
    this.#layout = layout;
    this.#consumers = consumers;
    this.#stream = stream;
  }

  name(group: string, lane: number): string {
    return laneConsumerName(group, this.#layout.generation, lane);
  }

  filter(lane: number): string {
    return laneFilter(this.#layout, lane);
  }

  readLane(group: string, lane: number): Promise<LaneConsumerState | undefined> {
    return this.#consumers.read(this.name(group, lane), this.filter(lane));
  }

  /** Rejects with CONSUMER_DIFFERS when the consumer of one of these lanes exists and does not fit. */
  async refuseChanged(group: string, lanes: readonly number[]): Promise<void> {
    const queue = new PQueue({ concurrency: atOnce });
    refuseDifferent(await queue.addAll(lanes.map((lane) => () => this.readLane(group, lane))));
  }

  /** Every lane's consumer as it is now. */
  read(group: string): Promise<(LaneConsumerState | undefined)[]> {
    return this.#eachLane((lane) => this.readLane(group, lane));
  }

  /** Finds the group's consumers and makes those that are missing. Rejects with CONSUMER_DIFFERS when one does not fit. */
  async ensure(wish: GroupWish, snapshot: StreamSnapshot): Promise<ReadyGroup> {
    const found = await this.read(wish.group);
    refuseDifferent(found);
    const known = found.find((state) => state?.incarnation !== undefined);
    const start = known?.groupStartSeq ?? (await this.#resolveStart(wish.start, snapshot));
    const incarnation = known?.incarnation ?? newIncarnation(snapshot);
    const first = await this.#ensureLane(wish, 0, found[0], { start, incarnation }, snapshot);
    const agreed = { start: first.groupStartSeq, incarnation: first.incarnation ?? incarnation };
    const lanes = await this.#eachLane(async (lane) =>
      lane === 0 ? first : this.#ensureLane(wish, lane, found[lane], agreed, snapshot),
    );
    return { incarnation: agreed.incarnation, startSeq: agreed.start, lanes, created: known === undefined };
  }

  /** Makes one lane's lost consumer again, to go on at `fromSeq`. */
  async remake(
    wish: GroupWish,
    lane: number,
    group: ReadyGroup,
    fromSeq: number,
    snapshot: StreamSnapshot,
  ): Promise<void> {
    const { startSeq: start, incarnation } = group;
    await this.#ensureLane(wish, lane, undefined, { start, incarnation }, snapshot, fromSeq);
  }

  /** Starts the group over for all lanes, under a new incarnation. Nobody may be working on it. */
  async rewind(group: string, to: GroupStart, snapshot: StreamSnapshot, ackWaitMs: number): Promise<void> {
    const start = await this.#resolveStart(to, snapshot);
    const agreed = { start, incarnation: newIncarnation(snapshot) };
    const wish: GroupWish = { group, assignment: "shared", start: to, ackWaitMs };
    // Lane 0 first: once it has the new incarnation, whoever comes next finishes what is interrupted here.
    await this.#replaceLane(wish, 0, agreed, snapshot);
    await this.#eachLane(async (lane) => {
      if (lane !== 0) await this.#replaceLane(wish, lane, agreed, snapshot);
    });
  }

  async delete(group: string): Promise<void> {
    const queue = new PQueue({ concurrency: atOnce });
    const ours = (await this.#consumers.list()).filter((one) => one.group === group);
    await queue.addAll(
      ours.map(
        ({ name }) =>
          () =>
            this.#consumers.delete(name),
      ),
    );
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
    // Of an older incarnation: a rewind was interrupted after it had replaced lane 0.
    if (lane !== 0 && found !== undefined && found.incarnation !== agreed.incarnation) {
      await this.#replaceLane(wish, lane, agreed, snapshot);
    } else if (found === undefined) {
      await this.#createLane(wish, lane, agreed, snapshot, fromSeq);
    } else {
      return this.#withAckWait(wish, found);
    }
    const made = await this.readLane(wish.group, lane);
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
    await this.#consumers.create({
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
    });
  }

  /**
   * A longer ackWait is applied at once: workers that count on the shorter one are only more careful than they need be.
   * A shorter one waits until nobody pulls, or a worker that counts on the longer one could overlap (O2).
   */
  async #withAckWait(wish: GroupWish, found: LaneConsumerState): Promise<LaneConsumerState> {
    const { ackWaitMs } = wish;
    const idle = found.waiting === 0 && found.inFlight === 0;
    if (ackWaitMs === found.ackWaitMs || (ackWaitMs < found.ackWaitMs && !idle)) return found;
    await this.#consumers.setAckWait(found.name, ackWaitMs);
    return { ...found, ackWaitMs };
  }

  async #resolveStart(start: GroupStart, snapshot: StreamSnapshot): Promise<number> {
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

  #eachLane<T>(run: (lane: number) => Promise<T>): Promise<T[]> {
    const queue = new PQueue({ concurrency: atOnce });
    const tasks = Array.from({ length: this.#layout.lanes }, (_, lane) => () => run(lane));
    return queue.addAll<T>(tasks);
  }
}

/** Bound to the stream's creation time: a stream made anew is another incarnation of every group. */
function newIncarnation(snapshot: StreamSnapshot): string {
  return `${snapshot.created}/${randomUUID().slice(0, 8)}`;
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
