import { LaneRouter } from "@lanekeeper/partitioner";
import type { Handler } from "../domain/event.js";
import { holdRules } from "../domain/hold.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { SlotQueue } from "../domain/slot-queue.js";
import type { ResolvedWorkerOptions } from "../domain/worker-options.js";
import type { Clock, Timer } from "./clock.js";
import { pause } from "./clock.js";
import type { ConnectionChange } from "./connection-port.js";
import type { GroupConsumers, GroupWish, ReadyGroup } from "./group-consumers.js";
import { Health } from "./health.js";
import type { Delivery, LaneFeed, OpenLaneFeed } from "./lane-feed-port.js";
import { LaneRepair } from "./lane-repair.js";
import { type LaneHost, LaneRunner, type Proof } from "./lane-runner.js";
import type { LanesContext } from "./lanes-context.js";
import { Liveness, pingInterval } from "./liveness.js";
import { reportLoss } from "./loss-report.js";
import { type Notify, notifier } from "./notifier.js";
import type { RosterPort } from "./roster-port.js";
import type { StreamState } from "./stream-watch.js";

/** A running worker of one group. */
export interface LaneWorker extends AsyncDisposable {
  readonly id: string;
  /** The lanes it takes events from, ascending; with `shared` assignment that is every lane. */
  lanes(): number[];
  status(): WorkerStatus;
  /**
   * Finishes everything in hand, confirms its acks, gives back what has not begun. Settles within `graceMs` (0 or more,
   * default 25,000) + 0.5 s: handlers that still run when the grace ends have their signal aborted (CLOSING) and their
   * events are left to be delivered again after ackWait. Idempotent; concurrent callers share one close. Never rejects.
   */
  close(options?: { graceMs?: number }): Promise<void>;
  /** Settles once, when the worker has ended for whatever reason; never rejects. */
  readonly closed: Promise<CloseReason>;
}

export interface WorkerStatus {
  readonly healthy: boolean;
  /** Why it is not healthy. */
  readonly error?: LanekeeperError;
  readonly lanes: number[];
  /** Events delivered to this worker and not settled. */
  readonly inFlight: number;
  readonly oldestHandler?: {
    readonly lane: number;
    readonly key: string;
    readonly seq: number;
    readonly ageMs: number;
  };
  /** Milliseconds by which the event loop is, or lately was, late. */
  readonly eventLoopLagMs: number;
}

export type CloseReason =
  | { readonly type: "closed" }
  | { readonly type: "connection-closed" | "stream-missing" | "failed"; readonly error: LanekeeperError };

/** What a worker is made of, beside its options. */
export interface WorkerParts {
  readonly context: LanesContext;
  readonly consumers: GroupConsumers;
  readonly openFeed: OpenLaneFeed;
  readonly roster: RosterPort;
  /** Random numbers from 0 to 1, for jitter. */
  readonly random: () => number;
}

export const defaultGraceMs = 25_000;
/** How long a stream may be missing before its workers end. */
const streamMissingMs = 60_000;
const stuckCheckMs = 5_000;
const transientGraceMs = 3_000;

/** Starts a worker: its consumers exist and fit, the server answers, and every lane is being pulled. */
export async function startWorker<E extends object>(
  parts: WorkerParts,
  options: ResolvedWorkerOptions,
  handler: Handler<E>,
): Promise<LaneWorker> {
  const { context, consumers } = parts;
  const state = await context.watch.look();
  if (state.type !== "ok") throw state.error;
  const wish: GroupWish = {
    group: options.group,
    assignment: options.assignment,
    start: options.deliverPolicy,
    ackWaitMs: options.ackWaitMs,
  };
  const group = await consumers.ensure(wish, state.snapshot);
  const at = context.clock.now();
  const wall = context.clock.wall();
  await context.connection.ping();
  // Handlers are called with the events of the caller's map; nothing here looks into them.
  const untyped = handler as unknown as Handler<Record<string, unknown>>;
  const worker = new SharedWorker(parts, options, wish, untyped, group, { at, wall }, state.snapshot.created);
  reportLoss(group, state.snapshot, worker.notify);
  return worker;
}

class SharedWorker implements LaneWorker, LaneHost {
  readonly id: string;
  readonly closed: Promise<CloseReason>;
  readonly options: ResolvedWorkerOptions;
  readonly handler: Handler<Record<string, unknown>>;
  readonly router: LaneRouter;
  readonly clock: Clock;
  readonly slots: SlotQueue;
  readonly feed: LaneFeed;
  readonly notify: Notify;
  readonly random: () => number;
  readonly #health: Health;
  readonly #liveness: Liveness;
  readonly #repair: LaneRepair;
  readonly #runners: readonly LaneRunner[];
  readonly #byConsumer = new Map<string, LaneRunner>();
  readonly #tickMs: number;
  readonly #undo: (() => void)[] = [];
  readonly #acks = new Set<Promise<boolean>>();
  #settleClosed: (reason: CloseReason) => void = () => {};
  #tickTimer: Timer | undefined;
  #stuckCheckedAt: number;
  #missingSince: number | undefined;
  #phase: "running" | "draining" | "finishing" | "ended" = "running";
  #closing: Promise<void> | undefined;

  constructor(
    parts: WorkerParts,
    options: ResolvedWorkerOptions,
    wish: GroupWish,
    handler: Handler<Record<string, unknown>>,
    group: ReadyGroup,
    proof: Proof,
    created: string,
  ) {
    const { context, consumers } = parts;
    const { clock, connection } = context;
    this.id = options.name;
    this.options = options;
    this.handler = handler;
    this.router = new LaneRouter(context.layout);
    this.clock = clock;
    this.random = parts.random;
    this.slots = new SlotQueue(options.concurrency);
    const own = notifier(options.onNotification, clock);
    this.notify = (notification) => {
      const fact = { group: options.group, ...notification };
      own(fact);
      context.notify(fact);
    };
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
    const ackWaitMs = Math.min(...group.lanes.map((lane) => lane.ackWaitMs));
    this.#tickMs = Math.min(Math.max(ackWaitMs / 20, 50), 250);
    this.#health = new Health(clock, this.notify);
    const pingMs = pingInterval(ackWaitMs);
    this.#liveness = new Liveness(connection, clock, this.#health, this.notify, this.#tickMs, pingMs, proof);
    this.#stuckCheckedAt = clock.now();
    this.feed = parts.openFeed({
      delivered: (delivery) => this.#delivered(delivery),
      trouble: (consumer, kind, text) => this.#trouble(consumer, kind, text),
      recovered: (consumer) => this.#health.clear(consumer),
      denied: (error) => this.#health.fault("permission", error),
    });
    this.#runners = group.lanes.map(
      ({ name, ackWaitMs }, lane) => new LaneRunner(lane, name, holdRules(ackWaitMs), this),
    );
    for (const runner of this.#runners) this.#byConsumer.set(runner.consumer, runner);
    this.#repair = new LaneRepair({
      context,
      consumers,
      wish,
      group,
      created,
      runners: this.#runners,
      health: this.#health,
      notify: this.notify,
      fail: (error) => this.#fail({ type: "failed", error }),
    });
    this.#undo.push(
      connection.observe((change) => this.#connectionChanged(change)),
      context.watch.observe((state) => this.#streamSeen(state)),
      parts.roster.answer(options.group, () => ({
        id: this.id,
        lanes: this.lanes(),
        blockedKeys: this.#stuckEvents().flatMap(({ key, misrouted }) => (misrouted ? [] : [key])),
      })),
    );
    this.#followSignal();
    for (const { consumer } of this.#runners) this.feed.add(consumer);
    this.#tickTimer = clock.after(this.#tickMs, () => this.#tick());
  }

  lanes(): number[] {
    return this.#phase === "running" ? this.#runners.map(({ lane }) => lane) : [];
  }

  status(): WorkerStatus {
    const { error } = this.#health;
    const oldest = this.#oldestHandler();
    return {
      healthy: error === undefined && this.#phase === "running",
      ...(error === undefined ? {} : { error }),
      lanes: this.lanes(),
      inFlight: this.#runners.reduce((sum, runner) => sum + runner.inFlight, 0),
      ...(oldest === undefined ? {} : { oldestHandler: oldest }),
      eventLoopLagMs: this.#liveness.lagMs,
    };
  }

  close(options: { graceMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options.graceMs ?? defaultGraceMs);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  incarnation(): string {
    return this.#repair.group.incarnation;
  }

  proof(): Proof {
    return this.#liveness.proof;
  }

  answersHeldBack(): boolean {
    return this.#phase === "draining";
  }

  confirmsAcks(): boolean {
    return this.#phase === "finishing";
  }

  awaitAck(confirmation: Promise<boolean>): void {
    this.#acks.add(confirmation);
    void confirmation.then(() => this.#acks.delete(confirmation));
  }

  #delivered(delivery: Delivery): void {
    this.#byConsumer.get(delivery.consumer)?.delivered(delivery);
  }

  #trouble(consumer: string, kind: Parameters<LaneRepair["trouble"]>[1], text: string): void {
    const runner = this.#byConsumer.get(consumer);
    if (runner !== undefined && this.#phase === "running") this.#repair.trouble(runner, kind, text);
  }

  #tick(): void {
    this.#tickTimer = this.clock.after(this.#tickMs, () => this.#tick());
    this.#liveness.tick();
    const now = this.clock.now();
    const wall = this.clock.wall();
    for (const runner of this.#runners) {
      runner.tick(now, wall);
      this.#judgeMisrouted(runner);
    }
    if (now - this.#stuckCheckedAt >= stuckCheckMs) {
      this.#stuckCheckedAt = now;
      void this.#repair.lookForStuck();
    }
  }

  /** A lane that a foreign event has stopped does not go on by itself: that is unhealthy until somebody removes it. */
  #judgeMisrouted(runner: LaneRunner): void {
    const cause = `misrouted in lane ${runner.lane}`;
    const error = runner.misrouted();
    if (error === undefined) this.#health.clear(cause);
    else this.#health.fault(cause, error);
  }

  #connectionChanged(change: ConnectionChange): void {
    if (change.type === "disconnected") {
      const text = "the connection to the server is lost; the client reconnects by its own settings";
      this.#health.fault("connection", new LanekeeperError("DISCONNECTED", text), 2_000);
    } else if (change.type === "reconnected") {
      this.#health.clear("connection");
      // A new connection may have other permissions; the next refusal tells.
      this.#health.clear("permission");
      this.#liveness.reconnected();
      for (const runner of this.#runners) runner.reconnected();
    } else if (change.type === "closed") {
      const text = "the connection was closed; open another one and start the worker again";
      const error = new LanekeeperError("CONNECTION_CLOSED", text, { cause: change.error });
      this.#fail({ type: "connection-closed", error });
    }
  }

  #streamSeen(state: StreamState): void {
    if (this.#phase === "ended") return;
    if (state.type !== "missing") this.#missingSince = undefined;
    if (state.type === "unreadable") {
      this.#health.fault("stream", state.error, transientGraceMs);
      return;
    }
    if (state.type === "missing") {
      this.#health.fault("stream", state.error);
      this.#missingSince ??= this.clock.now();
      if (this.clock.now() - this.#missingSince >= streamMissingMs) {
        this.#fail({ type: "stream-missing", error: state.error });
      }
      return;
    }
    this.#health.clear("stream");
    if (state.type === "layout-fault") {
      // O1: nothing starts by a layout that is no longer the stream's; what is in hand is kept alive until it is again.
      this.slots.pause();
      this.#health.fault("layout", state.error);
      return;
    }
    this.#health.clear("layout");
    this.slots.resume();
    void this.#repair.streamSeen(state.snapshot);
  }

  #stuckEvents(): { seq: number; key: string; misrouted: boolean }[] {
    return this.#runners.flatMap((runner) => runner.stuck());
  }

  #oldestHandler(): WorkerStatus["oldestHandler"] {
    let oldest: WorkerStatus["oldestHandler"];
    for (const { lane, runs } of this.#runners.map((runner) => ({
      lane: runner.lane,
      runs: runner.runs(),
    }))) {
      for (const { key, seq, ageMs } of runs) {
        if (oldest === undefined || ageMs > oldest.ageMs)
          oldest = { lane, key, seq, ageMs: Math.round(ageMs) };
      }
    }
    return oldest;
  }

  #followSignal(): void {
    const { signal } = this.options;
    if (signal === undefined) return;
    const close = () => void this.close();
    signal.addEventListener("abort", close, { once: true });
    this.#undo.push(() => signal.removeEventListener("abort", close));
    if (signal.aborted) close();
  }

  async #close(graceMs: number): Promise<void> {
    if (this.#phase === "ended") return;
    const deadline = this.clock.now() + Math.max(graceMs, 0);
    const left = () => deadline - this.clock.now();
    // O3: an ack sent while pulls are open would bring the next event; so pulls end first, and acks go out after.
    this.#phase = "draining";
    await this.feed.drain(Math.min(2_000, Math.max(left(), 100)));
    if (this.#hasEnded()) return;
    this.#phase = "finishing";
    for (const runner of this.#runners) runner.close();
    await this.#until(() => this.#running() === 0, left());
    if (this.#running() > 0) {
      const text = `the worker's grace of ${graceMs} ms is over; the event will be delivered again`;
      for (const runner of this.#runners) runner.abortRuns("CLOSING", text);
      await this.#until(() => this.#running() === 0, 200);
    }
    await this.#until(() => this.#acks.size === 0, Math.max(left(), 200));
    this.#end({ type: "closed" });
  }

  #hasEnded(): boolean {
    return this.#phase === "ended";
  }

  #running(): number {
    return this.#runners.reduce((sum, runner) => sum + runner.running, 0);
  }

  /** Resolves when the condition holds, or `ms` are over, or the worker has ended. */
  async #until(condition: () => boolean, ms: number): Promise<void> {
    const deadline = this.clock.now() + ms;
    while (!condition() && !this.#hasEnded() && this.clock.now() < deadline) {
      await pause(this.clock, Math.min(10, Math.max(deadline - this.clock.now(), 1)));
    }
  }

  /** Ends at once: what is in hand is no longer ours to settle. */
  #fail(reason: CloseReason & { error: LanekeeperError }): void {
    if (this.#phase === "ended") return;
    this.#health.fault("ended", reason.error);
    for (const runner of this.#runners) runner.reset(true);
    this.#end(reason);
  }

  #end(reason: CloseReason): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.#tickTimer?.stop();
    for (const undo of this.#undo) undo();
    for (const runner of this.#runners) runner.stop();
    this.#repair.stop();
    this.#health.stop();
    this.feed.close();
    this.#settleClosed(reason);
  }
}
