import PQueue from "p-queue";
import { holdRules } from "../domain/hold.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { PullTrouble } from "../domain/pull-state.js";
import { describeThrown } from "../domain/thrown.js";
import { DriftWatch } from "./drift-watch.js";
import type { GroupConsumers, GroupWish, ReadyGroup } from "./group-consumers.js";
import type { Health } from "./health.js";
import type { LaneConsumerState } from "./lane-consumer-port.js";
import type { LaneRunner } from "./lane-runner.js";
import type { LanesContext } from "./lanes-context.js";
import { LossWatch } from "./loss-watch.js";
import type { Notify } from "./notifier.js";
import type { SharedPolicy } from "./shared-policy.js";
import type { StreamSnapshot } from "./stream-port.js";

/** A pull's trouble that is over within this time is not worth an `unhealthy`. */
const transientGraceMs = 3_000;
/** nats-server 2.10 tells a time of creation that is a little later once it was started again. */
const createdAgainMs = 1_000;
const mayBeAnothers = "and may have given the event to another worker";
/** Lanes looked at, at once. */
const atOnce = 8;

export interface LaneRepairParts {
  readonly context: LanesContext;
  readonly consumers: GroupConsumers;
  readonly wish: GroupWish;
  readonly group: ReadyGroup;
  /** The `created` time of the stream that the group was found on. */
  readonly created: string;
  readonly runners: readonly LaneRunner[];
  /** By lane, as the runners. */
  readonly policies: readonly SharedPolicy[];
  readonly health: Health;
  readonly notify: Notify;
  /** Ends the worker: what is wrong does not mend itself. */
  readonly fail: (error: LanekeeperError) => void;
}

/**
 * Brings a shared worker's lanes back: looks into pulls that met trouble, makes lost consumers again, and starts over on
 * a stream that was made anew.
 */
export class LaneRepair {
  readonly #parts: LaneRepairParts;
  readonly #queue = new PQueue({ concurrency: atOnce });
  readonly #looking = new Set<LaneRunner>();
  readonly #loss: LossWatch;
  readonly #drift: DriftWatch;
  #group: ReadyGroup;
  #created: string;
  /** When each lane's consumer was made, by lane; undefined where that is not known for certain. */
  #made: (number | undefined)[];
  #startingOver: Promise<void> | undefined;
  #stopped = false;

  constructor(parts: LaneRepairParts) {
    this.#parts = parts;
    this.#group = parts.group;
    this.#created = parts.created;
    this.#made = parts.group.lanes.map(({ created }) => created);
    this.#loss = new LossWatch(
      parts.context.streamPort,
      {
        read: () => parts.consumers.read(parts.wish.group),
        filter: (lane) => parts.consumers.filter(lane),
      },
      parts.notify,
    );
    this.#drift = new DriftWatch(parts.consumers, parts.wish.group, parts.runners.length, (error) => {
      if (!this.#stopped) parts.fail(error);
    });
  }

  get group(): ReadyGroup {
    return this.#group;
  }

  stop(): void {
    this.#stopped = true;
    this.#queue.clear();
  }

  trouble(runner: LaneRunner, kind: PullTrouble, text: string): void {
    const { health } = this.#parts;
    // The next pull goes to the new leader; with MaxAckPending 1 nothing can have overtaken what was under way.
    if (kind === "leader-changed") return;
    health.fault(runner.consumer, troubleError(runner, kind, text), transientGraceMs);
    // Whatever is in hand goes to whoever the new consumer gives it to; an ack of ours could settle another event (O6).
    if (kind === "consumer-deleted" || kind === "stream-deleted") {
      runner.reset(kind === "stream-deleted");
      // Whoever makes it again, it is another.
      this.#made[runner.lane] = undefined;
    }
    if (this.#looking.has(runner)) return;
    this.#looking.add(runner);
    void this.#queue.add(() => this.#look(runner).finally(() => this.#looking.delete(runner)));
  }

  /** The stream was read and carries the layout; starts over when it is another stream than before. */
  async streamSeen(snapshot: StreamSnapshot): Promise<void> {
    if (snapshot.created === this.#created) {
      await Promise.all([this.#loss.look(snapshot), this.#drift.look()]);
      return;
    }
    try {
      await this.#startOver(
        snapshot,
        "the stream was deleted and made again; work starts at its first event",
      );
    } catch (error) {
      this.#failed("start-over", error);
    }
  }

  /**
   * Looks whether the consumers are still those this worker knows: rewound meanwhile, they give out events that it
   * remembers as settled; made anew, they may have given what it has in hand to another; and a shorter ackWait makes its
   * holds too long (O2, O4). Rejects when that cannot be told.
   *
   * @param restartedAt when the connection came back to a server process that was started anew; undefined otherwise
   * @returns the lanes that such a process has forgotten nothing of
   */
  async verify(restartedAt?: number): Promise<ReadonlySet<LaneRunner>> {
    const { consumers, wish, policies, runners, context } = this.#parts;
    const found = await consumers.read(wish.group);
    const rewound = found.some((state) => {
      return state?.incarnation !== undefined && state.incarnation !== this.#group.incarnation;
    });
    if (rewound) {
      const state = await context.watch.look();
      if (state.type !== "ok") throw state.error;
      await this.#startOver(state.snapshot, "the group was rewound; work starts where the rewind says");
      return new Set();
    }
    const remembered = new Set<LaneRunner>();
    for (const [lane, runner] of runners.entries()) {
      const state = found[lane];
      const policy = policies[lane];
      if (policy !== undefined && state !== undefined) policy.rules = holdRules(state.ackWaitMs);
      const made = this.#made[lane];
      this.#made[lane] = state?.created;
      if (state !== undefined && made !== undefined && state.created > made + createdAgainMs) {
        runner.reset(false, `consumer ${state.name} was made anew ${mayBeAnothers}`);
      } else if (restartedAt !== undefined) {
        if (forgotten(runner, state, restartedAt)) {
          runner.reset(false, `the server was started again ${mayBeAnothers}`);
        } else remembered.add(runner);
      }
    }
    return remembered;
  }

  async #look(runner: LaneRunner): Promise<void> {
    if (this.#stopped) return;
    const { context, consumers, wish, notify } = this.#parts;
    try {
      if ((await consumers.readLane(wish.group, runner.lane)) !== undefined) return;
      const state = await context.watch.look();
      if (this.#stopped || state.type !== "ok" || state.snapshot.created !== this.#created) return;
      runner.reset(false);
      // What the consumer had settled when this worker found it, it has settled for good.
      const floor = this.#group.lanes[runner.lane]?.ackFloor ?? 0;
      const fromSeq = Math.max(runner.settledBelow, floor + 1, this.#group.startSeq);
      const made = await consumers.remake(wish, runner.lane, this.#group, fromSeq, state.snapshot);
      this.#made[runner.lane] = made.created;
      const text = `consumer ${runner.consumer} was deleted; it was made again from sequence ${fromSeq}`;
      notify({
        type: "rewound",
        lane: runner.lane,
        seq: fromSeq,
        error: new LanekeeperError("CONSUMER_NOT_FOUND", text),
      });
    } catch (error) {
      this.#failed(runner.consumer, error);
    }
  }

  #startOver(snapshot: StreamSnapshot, why: string): Promise<void> {
    this.#startingOver ??= this.#startOverOnce(snapshot, why).finally(() => {
      this.#startingOver = undefined;
    });
    return this.#startingOver;
  }

  async #startOverOnce(snapshot: StreamSnapshot, why: string): Promise<void> {
    const { consumers, wish, runners, policies, health, notify } = this.#parts;
    for (const runner of runners) runner.reset(true);
    // O4: a new stream is the group's from its first event on, wherever it started in the old one.
    const group = await consumers.ensure({ ...wish, start: "all" }, snapshot);
    if (this.#stopped) return;
    // What came in between may have been handled under the old incarnation; it is let go and comes again.
    for (const runner of runners) runner.reset(true);
    for (const [lane, { ackWaitMs }] of group.lanes.entries()) {
      const policy = policies[lane];
      if (policy !== undefined) policy.rules = holdRules(ackWaitMs);
    }
    this.#group = group;
    this.#made = group.lanes.map(({ created }) => created);
    this.#created = snapshot.created;
    health.clear("start-over");
    notify({ type: "rewound", seq: group.startSeq, error: new LanekeeperError("STREAM_NOT_FOUND", why) });
  }

  /** What cannot mend itself ends the worker; anything else is tried again with the next trouble or look. */
  #failed(cause: string, thrown: unknown): void {
    if (this.#stopped) return;
    const error = LanekeeperError.is(thrown)
      ? thrown
      : new LanekeeperError("API_ERROR", `repairing a lane failed: ${describeThrown(thrown)}`, {
          cause: thrown,
        });
    if (error.code === "CONSUMER_DIFFERS" || error.code === "CONSUMER_OVERLAPS") this.#parts.fail(error);
    else this.#parts.health.fault(cause, error, transientGraceMs);
  }
}

/**
 * Whether a server process that was started anew may have given what this worker has in hand to another: what it knew
 * of its last tenth of a second is lost with a crash. Not so if it still counts our newest delivery as the lane's and has
 * delivered nothing since, or if it has delivered to us: with MaxAckPending 1 that is then all there is in hand (ADR 15).
 */
function forgotten(runner: LaneRunner, state: LaneConsumerState | undefined, restartedAt: number): boolean {
  const { seq, at } = runner.newest;
  if (at > restartedAt) return false;
  return state === undefined || state.deliversAgain || state.deliveredSeq < seq;
}

function troubleError(runner: LaneRunner, kind: PullTrouble, text: string): LanekeeperError {
  const where = `lane ${runner.lane} (consumer ${runner.consumer})`;
  if (kind === "consumer-deleted" || kind === "stream-deleted") {
    return new LanekeeperError("CONSUMER_NOT_FOUND", `${where}: the server says "${text}"`);
  }
  if (kind === "no-responders") {
    return new LanekeeperError(
      "JETSTREAM_UNAVAILABLE",
      `${where}: nobody answers its pull requests; its leader may be down`,
    );
  }
  if (kind === "silent") return new LanekeeperError("SERVER_UNRESPONSIVE", `${where}: ${text}`);
  return new LanekeeperError("API_ERROR", `${where}: pull requests are refused: ${text}`);
}
