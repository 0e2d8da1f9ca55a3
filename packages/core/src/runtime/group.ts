import PQueue from "p-queue";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Clock } from "./clock.js";
import { pause } from "./clock.js";
import type { GroupConsumers } from "./group-consumers.js";
import type { LaneConsumerState } from "./lane-consumer-port.js";
import type { RosterPort } from "./roster-port.js";
import type { StreamPort } from "./stream-port.js";

/** A group, whether or not workers run. Every method rejects with GROUP_NOT_FOUND when it has no consumers, unless said. */
export interface Group {
  status(): Promise<GroupStatus>;
  /**
   * Resolves when everything stored before the call is settled: handled and acked, or dropped. Without workers it waits
   * until `signal` aborts, and then rejects with the signal's reason.
   */
  caughtUp(options?: { signal?: AbortSignal }): Promise<void>;
  /** Deletes the group's consumers, and with them its progress. GROUP_RUNNING while workers live; nothing to do is fine. */
  delete(): Promise<void>;
  /**
   * Starts the group over from `to`, under a new incarnation. GROUP_RUNNING while workers live. Interrupted, it is
   * finished by the next rewind or worker.
   */
  rewind(to: "all" | { startSeq: number } | { startTime: Date }): Promise<void>;
}

export interface GroupStatus {
  /** Events stored and not yet delivered to a worker. */
  readonly pending: number;
  /** Events delivered and not settled. */
  readonly inFlight: number;
  /** Age in milliseconds of the oldest event that is not settled, by the server's time of storing; 0 when there is none. */
  readonly oldestMs: number;
  /** The live workers that answered; those whose user may not subscribe to `lanekeeper.workers.>` do not. */
  readonly workers: readonly { readonly id: string; readonly lanes: readonly number[] }[];
  readonly lanes: readonly LaneStatus[];
  /** Keys whose attempts are spent and that are tried on at the longest delay (onExhausted "block"). */
  readonly blockedKeys: readonly string[];
}

export interface LaneStatus {
  readonly generation: number;
  readonly lane: number;
  /** The one worker that has the lane; undefined with `shared` assignment, where every worker pulls every lane. */
  readonly owner?: string;
  readonly pending: number;
  readonly inFlight: number;
  /** Events that were delivered again and are not settled. */
  readonly redelivered: number;
  /** The stream sequence up to which everything of the lane is settled. */
  readonly ackFloor: number;
}

export interface GroupParts {
  readonly name: string;
  readonly generation: number;
  readonly consumers: GroupConsumers;
  readonly stream: StreamPort;
  readonly roster: RosterPort;
  readonly clock: Clock;
}

const atOnce = 16;
const caughtUpPollMs = 100;
/** The ackWait of a rewound group until its next worker sets its own. */
const defaultAckWaitMs = 30_000;

export class ConsumerGroup implements Group {
  readonly #parts: GroupParts;

  constructor(parts: GroupParts) {
    this.#parts = parts;
  }

  async status(): Promise<GroupStatus> {
    const [found, reports] = await Promise.all([this.#read(), this.#parts.roster.ask(this.#parts.name)]);
    const states = found.flatMap((state, lane) => (state === undefined ? [] : [{ lane, state }]));
    const lanes = states.map(({ lane, state }) => ({
      generation: this.#parts.generation,
      lane,
      pending: state.pending,
      inFlight: state.inFlight,
      redelivered: state.redelivered,
      ackFloor: state.ackFloor,
    }));
    return {
      pending: lanes.reduce((sum, lane) => sum + lane.pending, 0),
      inFlight: lanes.reduce((sum, lane) => sum + lane.inFlight, 0),
      oldestMs: await this.#oldestMs(states),
      workers: reports.map(({ id, lanes }) => ({ id, lanes })),
      lanes,
      blockedKeys: [...new Set(reports.flatMap(({ blockedKeys }) => blockedKeys))].sort(),
    };
  }

  async caughtUp({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    signal?.throwIfAborted();
    const { consumers, stream, name, clock } = this.#parts;
    const found = await this.#read();
    // Asked of the stream's leader: a consumer's own count of pending can be that of a lagging replica.
    const goals = await this.#eachLane(found, async (lane, state) => ({
      lane,
      state,
      seq: (await stream.lastMatching(consumers.filter(lane)))?.seq ?? 0,
    }));
    let open = goals.filter(({ state, seq }) => !isSettled(state, seq));
    while (open.length > 0) {
      await pause(clock, caughtUpPollMs, signal);
      signal?.throwIfAborted();
      const seen = await this.#eachLane(open, async (_, { lane, seq }) => ({
        lane,
        seq,
        state: await consumers.readLane(name, lane),
      }));
      open = seen.filter(({ state, seq }) => !isSettled(state, seq));
    }
  }

  async delete(): Promise<void> {
    await this.#refuseRunning("delete", await this.#parts.consumers.read(this.#parts.name));
    await this.#parts.consumers.delete(this.#parts.name);
  }

  async rewind(to: "all" | { startSeq: number } | { startTime: Date }): Promise<void> {
    const { consumers, stream, name } = this.#parts;
    const found = await this.#read();
    await this.#refuseRunning("rewind", found);
    const ackWaitMs = found.find((state) => state !== undefined)?.ackWaitMs ?? defaultAckWaitMs;
    await consumers.rewind(name, to, await stream.read(), ackWaitMs);
  }

  async #read(): Promise<(LaneConsumerState | undefined)[]> {
    const { consumers, name } = this.#parts;
    const found = await consumers.read(name);
    if (found.every((state) => state === undefined)) {
      throw new LanekeeperError(
        "GROUP_NOT_FOUND",
        `group ${name} has no consumers: no worker of it has run yet`,
      );
    }
    return found;
  }

  async #refuseRunning(what: string, found: readonly (LaneConsumerState | undefined)[]): Promise<void> {
    const { name, roster } = this.#parts;
    const workers = await roster.ask(name);
    if (workers.length === 0 && found.every((state) => (state?.waiting ?? 0) === 0)) return;
    const ids = workers.map(({ id }) => id).join(", ");
    const who = ids === "" ? "at least one is pulling" : ids;
    throw new LanekeeperError(
      "GROUP_RUNNING",
      `cannot ${what} group ${name} while workers live (${who}); close them first`,
    );
  }

  async #oldestMs(states: readonly { lane: number; state: LaneConsumerState }[]): Promise<number> {
    const { consumers, stream, clock } = this.#parts;
    const waiting = states.filter(({ state }) => state.pending + state.inFlight > 0);
    const ages = await this.#eachLane(waiting, async (_, { lane, state }) => {
      const oldest = await stream.nextMatching(
        consumers.filter(lane),
        Math.max(state.ackFloor + 1, state.groupStartSeq),
      );
      return oldest === undefined ? 0 : Math.max(clock.wall() - oldest.storedAt.getTime(), 0);
    });
    return Math.round(ages.reduce((oldest, age) => Math.max(oldest, age), 0));
  }

  #eachLane<T, R>(items: readonly T[], run: (index: number, item: T) => Promise<R>): Promise<R[]> {
    const queue = new PQueue({ concurrency: atOnce });
    return queue.addAll<R>(items.map((item, index) => () => run(index, item)));
  }
}

/** A missing consumer has settled nothing; one that starts behind `seq` has nothing to settle up to there. */
function isSettled(state: LaneConsumerState | undefined, seq: number): boolean {
  if (state === undefined) return seq === 0;
  return seq < state.groupStartSeq || state.ackFloor >= seq;
}
