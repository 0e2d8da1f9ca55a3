import { type LaneEffect, LaneMachine } from "../domain/lane-machine.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Notification } from "../domain/notification.js";
import type { AnswerKind } from "./answer.js";
import { type DeliveredEvent, readDelivery } from "./delivered-event.js";
import { HandlerRun, type RunOutcome } from "./handler-run.js";
import { LaneAnswers } from "./lane-answers.js";
import type { Delivery } from "./lane-feed-port.js";
import type { LaneHost } from "./lane-host.js";
import { handlerStuck, poisonEvent, staleDelivery } from "./lane-notices.js";
import type { LanePolicy } from "./lane-policy.js";
import { LaneRun, type RunSteps } from "./lane-run.js";
import { WakeTimer } from "./wake-timer.js";

/** Milliseconds after which a handler is not expected to end in the next few. */
const longRunMs = 50;

/** Connects one lane's machine with deliveries, handlers and answers. Decides nothing itself but what time it is. */
export class LaneRunner {
  readonly lane: number;
  readonly #policy: LanePolicy;
  readonly #host: LaneHost;
  readonly #machine: LaneMachine;
  readonly #held = new Map<number, DeliveredEvent>();
  readonly #runs = new Map<number, HandlerRun>();
  /** Runs that could not begin at once. */
  readonly #waiting = new Map<number, LaneRun>();
  readonly #steps: RunSteps = {
    granted: (run) => this.#begin(run),
    turn: (run, handler, event, later) => this.#turn(run, handler, event, later),
  };
  readonly #answers: LaneAnswers;
  readonly #endWaiters: (() => void)[] = [];
  #consumer: string;
  readonly #wake: WakeTimer;
  /** Why everything is being let go of, when it is for no lapse. */
  #why: string | undefined;
  #settledBelow = 0;
  /** The newest delivery: which event it was of, and when it came. */
  #newestSeq = 0;
  #newestAt = 0;
  /** Handlers that ran for a while already at the last tick: no answer waits to go out with theirs. */
  #longRuns = 0;

  /** `consumer`: what it is pulled from; empty as long as there is none. */
  constructor(lane: number, policy: LanePolicy, host: LaneHost, consumer = "") {
    this.lane = lane;
    this.#policy = policy;
    this.#host = host;
    this.#consumer = consumer;
    this.#answers = new LaneAnswers(host, policy);
    this.#machine = new LaneMachine(host.options, policy.memory);
    this.#wake = new WakeTimer(host.clock, (now) => this.#apply(this.#machine.step({ type: "tick", now })));
  }

  get consumer(): string {
    return this.#consumer;
  }

  /** The newest delivery: which event it was of, and when it came. */
  get newest(): { seq: number; at: number } {
    return { seq: this.#newestSeq, at: this.#newestAt };
  }

  /** Events in hand: delivered and not settled. */
  get inFlight(): number {
    return this.#machine.held;
  }

  /** Handlers that have not ended. */
  get running(): number {
    return this.#runs.size;
  }

  /** Everything of the lane below this sequence is settled, as far as this worker knows; 0 when it knows nothing. */
  get settledBelow(): number {
    return this.#settledBelow;
  }

  runs(): Iterable<HandlerRun> {
    return this.#runs.values();
  }

  stuck(): { seq: number; key: string; misrouted: boolean }[] {
    return this.#machine.stuck();
  }

  /** Why the lane stands still, when it is for an event that is not its own. */
  misrouted(): LanekeeperError | undefined {
    const event = this.#machine.stuck().find(({ misrouted }) => misrouted);
    return event === undefined ? undefined : this.#held.get(event.seq)?.error;
  }

  delivered(delivery: Delivery): void {
    const { seq, stamp } = delivery;
    if (!this.#policy.accepts(delivery)) return;
    const hold = this.#policy.newHold();
    this.#newestSeq = seq;
    this.#newestAt = this.#host.clock.now();
    // O6: it may have waited so long on its way that the server has given it to another; it comes again.
    if (hold.lapsed(this.#newestAt, this.#host.clock.wall())) {
      this.#policy.letGo();
      this.#host.lookSoon();
      return this.#tell({ type: "fenced", seq, error: staleDelivery(seq) });
    }
    // With MaxAckPending 1 nothing is delivered before all that is below it is settled.
    this.#settledBelow = Math.max(this.#settledBelow, seq);
    const event = this.#hold(readDelivery(this.#host.router, delivery, hold));
    const fit = this.#policy.isPoison(seq) ? "poisonous" : "delivered";
    this.#apply(
      this.#machine.step({ type: event.misrouted ? "misrouted" : fit, seq, key: event.key, stamp }),
    );
  }

  /** Takes it in hand, or as the newest delivery of what is in hand. */
  #hold(event: DeliveredEvent): DeliveredEvent {
    const { delivery, hold } = event;
    const known = this.#held.get(delivery.seq);
    if (known?.delivery.stamp !== delivery.stamp) {
      this.#held.set(delivery.seq, event);
      return event;
    }
    known.delivery = delivery;
    known.hold = hold;
    return known;
  }

  /** Keeps what is held alive, lets go of what has lapsed, and says which handlers are stuck. Call it on every tick. */
  tick(now: number, wall: number): void {
    for (const [seq, held] of this.#held) {
      if (held.hold.lapsed(now, wall)) {
        this.#lapse(seq);
      } else if (held.hold.wantsWorking(now)) {
        const { hold, delivery } = held;
        if (this.#host.feed.working(delivery, () => hold.confirmed(now, wall))) hold.workingSent(now);
      }
    }
    this.#longRuns = 0;
    for (const run of this.#runs.values()) {
      if (now - run.startedAt >= longRunMs) this.#longRuns++;
      if (!run.reportStuck()) continue;
      this.#tell({ type: "handler-stuck", key: run.key, seq: run.seq, error: handlerStuck(run) });
    }
  }

  /** The connection is back: until `letGo` nothing is answered, because it is not known what happened meanwhile. */
  holdBack(): void {
    this.#answers.holdBack();
  }

  /**
   * Sends what was kept back. `again`: and the newest answer once more, which may have been lost with the old connection
   * and would hold up the lane for ackWait. Not to a server process that may have forgotten the event (O2).
   */
  letGo(again: boolean): void {
    this.#answers.letGo(again);
  }

  /** Says of every handler that runs that another worker may have its event, too. */
  tellOverlap(error: LanekeeperError): void {
    for (const { key, seq } of this.#runs.values()) this.#tell({ type: "overlap-possible", key, seq, error });
  }

  /** The stream no longer has an event that is stuck here. */
  gone(seq: number): void {
    this.#apply(this.#machine.step({ type: "gone", seq }));
  }

  /**
   * Nothing in hand is ours any more, as after consumer or stream were made anew. With `forget` also not what was
   * settled. `why` is for the handlers that run.
   */
  reset(forget: boolean, why?: string): void {
    this.#why = why;
    this.#apply(this.#machine.step({ type: "reset", forget }));
    this.#why = undefined;
    this.#held.clear();
    this.#answers.reset();
    if (forget) this.#settledBelow = 0;
  }

  /** Goes on with another consumer, or with the same one after a drain. */
  restart(consumer: string): void {
    this.#consumer = consumer;
    this.#answers.restart();
    this.#apply(this.#machine.step({ type: "reopened" }));
  }

  /** The feed is about to end this lane's pulls: until `finishDrain` nothing is answered. */
  beginDrain(): void {
    this.#answers.beginDrain();
  }

  /** Sends the answers kept back, then gives back what has not begun. What runs is finished, its ack confirmed. */
  finishDrain(): void {
    this.#answers.finish();
    this.#apply(this.#machine.step({ type: "closing", now: this.#host.clock.now() }));
    for (const run of [...this.#waiting.values()]) this.#unwait(run);
  }

  /** Resolves when no handler runs. */
  ended(): Promise<void> {
    if (this.#runs.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#endWaiters.push(resolve));
  }

  /** Resolves when every ack since `finishDrain` has its answer: true when the server has confirmed them all. */
  acksConfirmed(): Promise<boolean> {
    return this.#answers.acksConfirmed();
  }

  abortRuns(code: "CLOSING" | "FENCED", message: string): void {
    for (const run of this.#runs.values()) run.abort(code, message);
  }

  stop(): void {
    this.#wake.stop();
  }

  #apply(effects: readonly LaneEffect[]): void {
    for (const effect of effects) this.#do(effect);
  }

  #do(effect: LaneEffect): void {
    switch (effect.type) {
      case "start":
        this.#start(effect.seq, effect.run, effect.retries);
        break;
      case "ack":
        this.#settledBelow = Math.max(this.#settledBelow, effect.seq + 1);
        this.#answer(effect.seq, "ack");
        break;
      case "drop": {
        const reason = this.#held.get(effect.seq)?.error?.code ?? "HANDLER_FAILED";
        this.#settledBelow = Math.max(this.#settledBelow, effect.seq + 1);
        this.#tellOf(effect.seq, { type: "dropped" });
        this.#answer(effect.seq, "drop", 0, reason);
        break;
      }
      case "release":
        this.#answer(effect.seq, "release", effect.delayMs);
        break;
      case "retry":
      case "blocked":
      case "misrouted":
      case "lost":
        this.#tellOf(effect.seq, { type: effect.type });
        break;
      case "poisonous": {
        const key = this.#held.get(effect.seq)?.key ?? "";
        this.#tell({ type: "blocked", key, seq: effect.seq, error: poisonEvent(key, effect.seq) });
        break;
      }
      case "fence":
        this.#fence(effect.seq, effect.run);
        break;
      case "wake":
        this.#wake.set(effect.at);
        break;
    }
  }

  #start(seq: number, number: number, retries: number): void {
    const run = new LaneRun(this.#steps, seq, number, retries);
    this.#policy.beforeStart(seq, () => this.#queue(run));
    // Most have begun by now.
    if (run.state !== "begun") this.#waiting.set(number, run);
  }

  #queue(run: LaneRun): void {
    // Taken away while it was before its turn to run alone.
    if (run.state !== "gated") return;
    run.state = "queued";
    this.#host.slots.request(this.lane, run);
  }

  /** A slot is ours: the last look at the hold before a handler starts (O6). */
  #begin(run: LaneRun): void {
    const { clock, slots } = this.#host;
    const { seq, number } = run;
    const wanted = run.state === "queued";
    run.state = "begun";
    if (this.#waiting.size > 0) this.#waiting.delete(number);
    const now = clock.now();
    const held = this.#held.get(seq);
    if (!wanted || held === undefined || held.hold.lapsed(now, clock.wall())) {
      if (wanted) {
        this.#lapse(seq);
        this.#apply(this.#machine.step({ type: "unstarted", run: number }));
        this.#policy.afterEnd(seq, false);
      }
      slots.release();
      return;
    }
    const handler = new HandlerRun(held.key, seq, clock, now);
    this.#runs.set(number, handler);
    run.begin(handler, held);
    this.#host.inTurn(run);
  }

  #turn(run: LaneRun, handlerRun: HandlerRun, held: DeliveredEvent, later: boolean): void {
    const { seq, number, retries } = run;
    const { clock, options, handler, router } = this.#host;
    const isOurs = () => this.#held.get(seq) === held && !held.hold.lapsed(clock.now(), clock.wall());
    // O6: its turn may have come later than its slot.
    if (later && !isOurs()) return this.#finish(seq, number, { type: "unstarted" });
    const fence = this.#policy.fence(held.delivery, this.#host.incarnation());
    const event = held.describe(router.layout.generation, this.lane, retries);
    const settled = (outcome: RunOutcome) => this.#finish(seq, number, outcome);
    const outcome = handlerRun.execute(event, options, handler, fence, isOurs, settled);
    if (outcome !== undefined) settled(outcome);
  }

  #finish(seq: number, run: number, outcome: RunOutcome): void {
    // Still known while it ends: a hold that ran out meanwhile is told of this run (O6).
    this.#ended(seq, run, outcome);
    this.#runs.delete(run);
    this.#policy.afterEnd(seq, outcome.type !== "unstarted");
    this.#host.slots.release();
    if (this.#runs.size === 0) for (const resolve of this.#endWaiters.splice(0)) resolve();
  }

  #ended(seq: number, run: number, outcome: RunOutcome): void {
    const { clock } = this.#host;
    // O6: the hold may have run out while this process was not looking.
    const held = this.#held.get(seq);
    if (held?.hold.lapsed(clock.now(), clock.wall())) this.#lapse(seq);
    if (outcome.type !== "failed") return this.#apply(this.#machine.step({ type: outcome.type, run }));
    const failed = this.#held.get(seq);
    if (failed !== undefined) failed.error = outcome.error;
    const { terminal, retryAfterMs } = outcome;
    this.#apply(
      this.#machine.step({
        type: "failed",
        run,
        terminal,
        retryAfterMs,
        roll: this.#host.random(),
        now: clock.now(),
      }),
    );
  }

  #fence(seq: number, run: number): void {
    const handlerRun = this.#runs.get(run);
    if (handlerRun === undefined) {
      const waiting = this.#waiting.get(run);
      if (waiting !== undefined) this.#unwait(waiting);
      return;
    }
    const text = this.#why ?? this.#policy.lapseText(seq);
    const error = new LanekeeperError("FENCED", text);
    handlerRun.abort("FENCED", text);
    const about = { key: handlerRun.key, seq, error };
    this.#tell({ type: "fenced", ...about });
    this.#tell({ type: "overlap-possible", ...about });
  }

  /** A hold has lapsed: the event, or with it the whole lane, is not ours any more (O6). */
  #lapse(seq: number): void {
    this.#policy.letGo();
    this.#host.lookSoon();
    if (this.#policy.lapses === "lane") return this.reset(false);
    this.#apply(this.#machine.step({ type: "lapsed", seq }));
    this.#held.delete(seq);
  }

  /** A run that has not begun will not begin. */
  #unwait(run: LaneRun): void {
    // What was taken away while it waited for its slot has been told already.
    if (run.state === "taken") return;
    // One that waits for a slot still gets it, and gives it back.
    if (run.state === "gated") this.#waiting.delete(run.number);
    run.state = "taken";
    this.#apply(this.#machine.step({ type: "unstarted", run: run.number }));
  }

  /** An answer ends our hold of the event. */
  #answer(seq: number, kind: AnswerKind, delayMs = 0, reason = ""): void {
    const held = this.#held.get(seq);
    if (held === undefined) {
      if (kind !== "release") this.#answers.settledUnheld();
      return;
    }
    this.#held.delete(seq);
    const { held: inHand, running } = this.#machine;
    const load = { held: inHand, running: Math.max(running - this.#longRuns, 0) };
    this.#answers.give(held, load, kind, delayMs, reason);
  }

  #tellOf(seq: number, notification: Pick<Notification, "type">): void {
    const held = this.#held.get(seq);
    const about = held?.key ? { key: held.key } : {};
    this.#tell({ ...notification, seq, ...about, ...(held?.error ? { error: held.error } : {}) });
  }

  #tell(notification: Omit<Notification, "at">): void {
    this.#host.notify({ ...notification, lane: this.lane });
  }
}
