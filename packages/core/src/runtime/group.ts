import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Clock } from "./clock.js";
import { pause } from "./clock.js";
import { eachAtOnce } from "./each-at-once.js";
import type { GroupLanes } from "./group-lanes.js";
import { type LaneView, settledBelow } from "./lane-view.js";
import { patiently } from "./patience.js";
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
   * Starts the group over from `to`, under a new incarnation. GROUP_RUNNING while workers live. Interrupted,
   * it has to be called again; until then no worker starts (REWIND_INTERRUPTED).
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
  /** The group's lanes, by the way they are assigned now. */
  readonly lanes: () => Promise<GroupLanes>;
  readonly filter: (lane: number) => string;
  readonly stream: StreamPort;
  readonly roster: RosterPort;
  readonly clock: Clock;
}

const atOnce = 16;
const caughtUpPollMs = 100;

/** A lane, and the sequence up to which it is waited for. */
interface Goal {
  readonly view: LaneView;
  readonly seq: number;
}

export class ConsumerGroup implements Group {
  readonly #parts: GroupParts;

  constructor(parts: GroupParts) {
    this.#parts = parts;
  }

  async status(): Promise<GroupStatus> {
    const { generation, name, roster } = this.#parts;
    const [views, reports] = await Promise.all([this.#read(), roster.ask(name)]);
    const lanes = views.flatMap(({ lane, state, owner }) =>
      state === undefined
        ? []
        : [
            {
              generation,
              lane,
              ...(owner === undefined ? {} : { owner }),
              pending: state.pending,
              inFlight: state.inFlight,
              redelivered: state.redelivered,
              ackFloor: state.ackFloor,
            },
          ],
    );
    return {
      pending: lanes.reduce((sum, lane) => sum + lane.pending, 0),
      inFlight: lanes.reduce((sum, lane) => sum + lane.inFlight, 0),
      oldestMs: await this.#oldestMs(views),
      workers: reports.map(({ id, lanes }) => ({ id, lanes })),
      lanes,
      blockedKeys: [...new Set(reports.flatMap(({ blockedKeys }) => blockedKeys))].sort(),
    };
  }

  async caughtUp({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    signal?.throwIfAborted();
    const { filter, stream, clock } = this.#parts;
    // Asked of the stream's leader: a consumer's own count of pending can be that of a lagging replica.
    const views = await this.#read(signal);
    const last = async (view: LaneView) => ({
      view,
      seq: (await stream.lastMatching(filter(view.lane)))?.seq ?? 0,
    });
    const goals: Goal[] = await patiently(clock, () => eachAtOnce(views, atOnce, last), { signal });
    let open = goals.filter(({ view, seq }) => seq >= settledBelow(view));
    while (open.length > 0) {
      await pause(clock, caughtUpPollMs, signal);
      signal?.throwIfAborted();
      const before = open;
      open = await patiently(clock, () => this.#unsettled(before), { signal });
    }
  }

  async delete(): Promise<void> {
    const lanes = await this.#lanes();
    await this.#refuseRunning("delete", lanes);
    await patiently(this.#parts.clock, () => lanes.delete());
  }

  async rewind(to: "all" | { startSeq: number } | { startTime: Date }): Promise<void> {
    const { clock, stream } = this.#parts;
    await this.#read();
    const lanes = await this.#lanes();
    await this.#refuseRunning("rewind", lanes);
    await lanes.rewind(to, await patiently(clock, () => stream.read()));
  }

  #lanes(): Promise<GroupLanes> {
    return patiently(this.#parts.clock, this.#parts.lanes);
  }

  /** What of this is still to be settled. What the stream has deleted since is not waited for: it never settles. */
  async #unsettled(goals: readonly Goal[]): Promise<Goal[]> {
    const lanes = await this.#parts.lanes();
    const { firstSeq } = await this.#parts.stream.read();
    const seen = await eachAtOnce(goals, atOnce, async ({ view, seq }) => ({
      view: await lanes.readLane(view.lane),
      seq,
    }));
    return seen.filter(({ view, seq }) => seq >= firstSeq && seq >= settledBelow(view));
  }

  #read(signal?: AbortSignal): Promise<readonly LaneView[]> {
    return patiently(this.#parts.clock, () => this.#readOnce(), { signal });
  }

  async #readOnce(): Promise<readonly LaneView[]> {
    const lanes = await this.#parts.lanes();
    const views = await lanes.read();
    if (!lanes.recorded && views.every(({ state }) => state === undefined)) {
      throw new LanekeeperError(
        "GROUP_NOT_FOUND",
        `group ${this.#parts.name} has no consumers: no worker of it has run yet`,
      );
    }
    return views;
  }

  async #refuseRunning(what: string, lanes: GroupLanes): Promise<void> {
    const { name, roster, clock } = this.#parts;
    const workers = await roster.ask(name);
    const live = () => patiently(clock, () => lanes.live());
    const ids = workers.length > 0 ? workers.map(({ id }) => id) : await live();
    if (ids.length === 0) return;
    throw new LanekeeperError(
      "GROUP_RUNNING",
      `cannot ${what} group ${name} while workers live (${ids.join(", ")}); close them first`,
    );
  }

  async #oldestMs(views: readonly LaneView[]): Promise<number> {
    const { filter, stream, clock } = this.#parts;
    const waiting = views.filter(({ state }) => state !== undefined && state.pending + state.inFlight > 0);
    const ageOf = async (view: LaneView) => {
      const oldest = await stream.nextMatching(filter(view.lane), settledBelow(view));
      return oldest === undefined ? 0 : Math.max(clock.wall() - oldest.storedAt.getTime(), 0);
    };
    const ages = await patiently(clock, () => eachAtOnce(waiting, atOnce, ageOf));
    return Math.round(ages.reduce((oldest, age) => Math.max(oldest, age), 0));
  }
}
