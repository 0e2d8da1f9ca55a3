import { LaneRouter } from "@lanekeeper/partitioner";
import type { Handler } from "../domain/event.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { SlotQueue } from "../domain/slot-queue.js";
import type { ResolvedWorkerOptions } from "../domain/worker-options.js";
import type { Answer } from "./answer.js";
import { type Clock, pause, type Timer } from "./clock.js";
import type { ConnectionChange } from "./connection-port.js";
import { HandlerTurns } from "./handler-turns.js";
import { Health } from "./health.js";
import type { LaneFeed, OpenLaneFeed } from "./lane-feed-port.js";
import type { Turn } from "./lane-host.js";
import type { LaneRunner } from "./lane-runner.js";
import type { LaneSet, WorkerHost } from "./lane-set.js";
import type { CloseReason, LaneWorker, WorkerStatus } from "./lane-worker.js";
import type { LanesContext } from "./lanes-context.js";
import { Liveness, pingInterval } from "./liveness.js";
import { type Notify, notifier } from "./notifier.js";
import type { RosterPort } from "./roster-port.js";
import type { Proof } from "./shared-policy.js";
import type { StreamState } from "./stream-watch.js";
import { StuckWatch } from "./stuck-watch.js";

/** What a worker is made of, beside its options. */
export interface WorkerParts {
  readonly context: LanesContext;
  readonly openFeed: OpenLaneFeed;
  readonly roster: RosterPort;
  /** Random numbers from 0 to 1, for jitter. */
  readonly random: () => number;
  /** Calls `run` once this turn of the event loop has read what there is to read. */
  readonly soon: (run: () => void) => void;
}

/** Answers sent together at most: more would only keep their events in memory for longer. */
const mostAnswers = 256;
/**
 * Milliseconds for which an answer that nothing waits for may wait for others to be written with. What is unanswered when a
 * process is killed is handled again: it must not be much more than what was in flight anyway.
 */
const answersMs = 5;
const defaultGraceMs = 25_000;
/** How long a stream may be missing before its workers end. */
const streamMissingMs = 60_000;
const transientGraceMs = 3_000;
/** How long handlers have to obey their signal once the grace is over. */
const abortedMs = 200;

/** A worker, whatever the way its lanes are assigned: handlers, health, the connection's ups and downs, closing. */
export class Worker implements LaneWorker, WorkerHost {
  readonly id: string;
  readonly closed: Promise<CloseReason>;
  readonly options: ResolvedWorkerOptions;
  readonly handler: Handler<Record<string, unknown>>;
  readonly router: LaneRouter;
  readonly clock: Clock;
  readonly slots: SlotQueue;
  readonly feed: LaneFeed;
  readonly health: Health;
  readonly notify: Notify;
  readonly random: () => number;
  readonly #liveness: Liveness;
  readonly #stuck: StuckWatch;
  readonly #lanes: LaneSet;
  readonly #tickMs: number;
  readonly #undo: (() => void)[] = [];
  readonly #soon: (run: () => void) => void;
  #answers: Answer[] = [];
  #answersUrgent = false;
  #answerTimer: Timer | undefined;
  readonly #turns: HandlerTurns;
  #settleClosed: (reason: CloseReason) => void = () => {};
  #tickTimer: Timer | undefined;
  #lookingSoon = false;
  #missingSince: number | undefined;
  #phase: "running" | "closing" | "ended" = "running";
  #closing: Promise<void> | undefined;

  /**
   * @param ackWaitMs the shortest in force among its lanes
   * @param proof the send time of a ping that was answered just now
   */
  constructor(
    parts: WorkerParts,
    options: ResolvedWorkerOptions,
    handler: Handler<Record<string, unknown>>,
    ackWaitMs: number,
    proof: Proof,
    openLaneSet: (host: WorkerHost) => LaneSet,
  ) {
    const { context, roster } = parts;
    const { clock, connection } = context;
    this.id = options.name;
    this.options = options;
    this.handler = handler;
    this.router = new LaneRouter(context.layout);
    this.clock = clock;
    this.random = parts.random;
    this.#soon = parts.soon;
    this.#turns = new HandlerTurns(clock, parts.soon);
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
    this.#tickMs = Math.min(Math.max(ackWaitMs / 20, 50), 250);
    this.health = new Health(clock, this.notify);
    const pingMs = pingInterval(ackWaitMs);
    this.#liveness = new Liveness(connection, clock, this.health, this.notify, this.#tickMs, pingMs, proof);
    this.#stuck = new StuckWatch(context.streamPort, clock.now());
    this.feed = parts.openFeed({
      delivered: (delivery) => this.#lanes.runnerOf(delivery.consumer)?.delivered(delivery),
      trouble: (consumer, kind, text) => {
        const runner = this.#lanes.runnerOf(consumer);
        if (runner !== undefined && this.#phase === "running") this.#lanes.trouble(runner, kind, text);
      },
      recovered: (consumer) => this.health.clear(consumer),
      denied: (error) => this.health.fault("permission", error),
    });
    this.#lanes = openLaneSet(this);
    this.#undo.push(
      connection.observe((change) => this.#connectionChanged(change)),
      context.watch.observe((state) => this.#streamSeen(state)),
      roster.answer(options.group, () => ({
        id: this.id,
        lanes: this.lanes(),
        blockedKeys: this.#blockedKeys(),
      })),
    );
    this.#followSignal();
    this.#tickTimer = clock.after(this.#tickMs, () => this.#tick());
  }

  lanes(): number[] {
    return this.#phase === "ended" ? [] : this.#lanes.lanes();
  }

  status(): WorkerStatus {
    const { error } = this.health;
    const oldest = this.#oldestHandler();
    return {
      healthy: error === undefined && this.#phase === "running",
      ...(error === undefined ? {} : { error }),
      lanes: this.lanes(),
      inFlight: this.#lanes.runners.reduce((sum, runner) => sum + runner.inFlight, 0),
      ...(oldest === undefined ? {} : { oldestHandler: oldest }),
      eventLoopLagMs: this.#liveness.lagMs,
    };
  }

  close(options: { graceMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(Math.max(options.graceMs ?? defaultGraceMs, 0));
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  incarnation(): string {
    return this.#lanes.incarnation();
  }

  proof(): Proof {
    return this.#liveness.proof;
  }

  sendSoon(answer: Answer, urgent: boolean): void {
    if (this.#answers.push(answer) >= mostAnswers) return this.sendAnswers();
    if (urgent) {
      if (this.#answersUrgent) return;
      this.#answersUrgent = true;
      this.#soon(() => this.sendAnswers());
    } else {
      this.#answerTimer ??= this.clock.after(answersMs, () => {
        this.#answerTimer = undefined;
        this.sendAnswers();
      });
    }
  }

  /** One write for all: a write costs more than everything else about a short event. */
  sendAnswers(): void {
    this.#answersUrgent = false;
    const answers = this.#answers;
    if (answers.length === 0) return;
    this.#answers = [];
    // One look at the clocks for all: nothing but sending comes between.
    const now = this.clock.now();
    const wall = this.clock.wall();
    for (const answer of answers) answer.send(now, wall);
  }

  inTurn(turn: Turn): void {
    this.#turns.add(turn);
  }

  lookSoon(): void {
    if (this.#lookingSoon) return;
    this.#lookingSoon = true;
    this.#soon(() => {
      this.#lookingSoon = false;
      if (this.#phase !== "ended") this.#look();
    });
  }

  fail(error: LanekeeperError): void {
    this.#fail({ type: "failed", error });
  }

  #tick(): void {
    this.#tickTimer = this.clock.after(this.#tickMs, () => this.#tick());
    this.#liveness.tick();
    this.#look();
    this.#stuck.tick(this.clock.now(), this.#lanes.runners);
  }

  #look(): void {
    const now = this.clock.now();
    const wall = this.clock.wall();
    this.#lanes.tick(now, wall);
    for (const runner of this.#lanes.runners) {
      runner.tick(now, wall);
      this.#judgeMisrouted(runner);
    }
  }

  /** A lane that a foreign event has stopped does not go on by itself: that is unhealthy until somebody removes it. */
  #judgeMisrouted(runner: LaneRunner): void {
    const cause = `misrouted in lane ${runner.lane}`;
    const error = runner.misrouted();
    if (error === undefined) this.health.clear(cause);
    else this.health.fault(cause, error);
  }

  #connectionChanged(change: ConnectionChange): void {
    if (change.type === "disconnected") {
      const text = "the connection to the server is lost; the client reconnects by its own settings";
      this.health.fault("connection", new LanekeeperError("DISCONNECTED", text), 2_000);
    } else if (change.type === "reconnected") {
      this.health.clear("connection");
      // A new connection may have other permissions; the next refusal tells.
      this.health.clear("permission");
      this.#liveness.reconnected();
      this.#lanes.reconnected();
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
      this.health.fault("stream", state.error, transientGraceMs);
      return;
    }
    if (state.type === "missing") {
      this.health.fault("stream", state.error);
      this.#missingSince ??= this.clock.now();
      if (this.clock.now() - this.#missingSince >= streamMissingMs) {
        this.#fail({ type: "stream-missing", error: state.error });
      }
      return;
    }
    this.health.clear("stream");
    if (state.type === "layout-fault") {
      // O1: nothing starts by a layout that is no longer the stream's; what is in hand is kept alive until it is again.
      this.slots.pause("layout");
      this.health.fault("layout", state.error);
      return;
    }
    this.health.clear("layout");
    this.slots.resume("layout");
    this.#lanes.streamSeen(state.snapshot);
  }

  #blockedKeys(): string[] {
    const stuck = this.#lanes.runners.flatMap((runner) => runner.stuck());
    return stuck.flatMap(({ key, misrouted }) => (misrouted ? [] : [key]));
  }

  #oldestHandler(): WorkerStatus["oldestHandler"] {
    let oldest: WorkerStatus["oldestHandler"];
    for (const runner of this.#lanes.runners) {
      for (const { key, seq, ageMs } of runner.runs()) {
        if (oldest === undefined || ageMs > oldest.ageMs) {
          oldest = { lane: runner.lane, key, seq, ageMs: Math.round(ageMs) };
        }
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
    this.#phase = "closing";
    // What has not begun is given back; until the pulls have ended it would begin.
    this.slots.pause("closing");
    const deadline = this.clock.now() + graceMs;
    let givenBack = false;
    const drainMs = Math.min(2_000, Math.max(graceMs, 100));
    void this.#lanes.giveBack(drainMs).then(
      () => {
        givenBack = true;
      },
      () => {
        // Whatever could not be given back is found by the others in time.
        givenBack = true;
      },
    );
    await this.#until(() => givenBack, graceMs);
    if (!givenBack) {
      const text = `the worker's grace of ${graceMs} ms is over; the event will be delivered again`;
      for (const runner of this.#lanes.runners) runner.abortRuns("CLOSING", text);
      await this.#until(() => givenBack, Math.max(deadline - this.clock.now(), abortedMs));
    }
    await this.#end({ type: "closed" });
  }

  /** Resolves when the condition holds, or `ms` are over, or the worker has ended. */
  async #until(condition: () => boolean, ms: number): Promise<void> {
    const deadline = this.clock.now() + ms;
    while (!condition() && this.#phase !== "ended" && this.clock.now() < deadline) {
      await pause(this.clock, Math.min(10, Math.max(deadline - this.clock.now(), 1)));
    }
  }

  /** Ends at once: what is in hand is no longer ours to settle. */
  #fail(reason: CloseReason & { error: LanekeeperError }): void {
    if (this.#phase === "ended") return;
    this.health.fault("ended", reason.error);
    for (const runner of this.#lanes.runners) runner.reset(true);
    void this.#end(reason);
  }

  async #end(reason: CloseReason): Promise<void> {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    // Nothing starts any more, whatever could not be given back.
    this.slots.pause("ended");
    this.#tickTimer?.stop();
    this.#answerTimer?.stop();
    for (const undo of this.#undo) undo();
    for (const runner of this.#lanes.runners as readonly LaneRunner[]) runner.stop();
    this.health.stop();
    await this.#lanes.end();
    this.feed.close();
    this.#settleClosed(reason);
  }
}
