import { type LaneEffect, LaneMachine } from "../domain/lane-machine.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Notification } from "../domain/notification.js";
import { AckConfirmations } from "./ack-confirmations.js";
import type { Answer } from "./answer.js";
import { readDelivery, type TypedMeta } from "./delivered-event.js";
import { HandlerRun, type RunOutcome } from "./handler-run.js";
import type { Delivery } from "./lane-feed-port.js";
import type { LaneHost } from "./lane-host.js";
import { handlerStuck, poisonEvent, staleDelivery } from "./lane-notices.js";
import type { EventHold, LanePolicy } from "./lane-policy.js";
import { WakeTimer } from "./wake-timer.js";

interface Held {
  readonly meta: TypedMeta;
  delivery: Delivery;
  hold: EventHold;
  /** Why the event failed last, or is not handled at all. */
  error: LanekeeperError | undefined;
}

/** Connects one lane's machine with deliveries, handlers and answers. Decides nothing itself but what time it is. */
export class LaneRunner {
  readonly lane: number;
  readonly #policy: LanePolicy;
  readonly #host: LaneHost;
  readonly #machine: LaneMachine;
  readonly #held = new Map<number, Held>();
  readonly #runs = new Map<number, HandlerRun>();
  /** Runs that have not begun: before their turn to run alone, waiting for a slot, or taken away while waiting for it. */
  readonly #waiting = new Map<number, "gated" | "queued" | "taken">();
  readonly #keptBack: Answer[] = [];
  readonly #acks = new AckConfirmations();
  readonly #endWaiters: (() => void)[] = [];
  #consumer: string;
  /**
   * Held back and draining: answers are kept, because what they would do is not known yet, or because an ack would bring
   * the next event. Finishing: acks are confirmed.
   */
  #phase: "running" | "held-back" | "draining" | "finishing" = "running";
  /** The newest event settled here; answering it twice does no harm, as giving one back twice would. */
  #lastSettled: Answer | undefined;
  readonly #wake: WakeTimer;
  #settledBelow = 0;
  /** Counts resets: answers from before one are not sent any more. */
  #round = 0;

  /** `consumer`: what it is pulled from; empty as long as there is none. */
  constructor(lane: number, policy: LanePolicy, host: LaneHost, consumer = "") {
    this.lane = lane;
    this.#policy = policy;
    this.#host = host;
    this.#consumer = consumer;
    this.#machine = new LaneMachine(host.options, policy.memory);
    this.#wake = new WakeTimer(host.clock, (now) => this.#apply(this.#machine.step({ type: "tick", now })));
  }

  get consumer(): string {
    return this.#consumer;
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
    // O6: it may have waited so long on its way that the server has given it to another; it comes again.
    if (hold.lapsed(this.#host.clock.now(), this.#host.clock.wall())) {
      this.#policy.letGo();
      return this.#tell({ type: "fenced", seq, error: staleDelivery(seq) });
    }
    // With MaxAckPending 1 nothing is delivered before all that is below it is settled.
    this.#settledBelow = Math.max(this.#settledBelow, seq);
    const { meta, error } = readDelivery(this.#host.router, this.lane, delivery);
    const known = this.#held.get(seq);
    const again = known?.delivery.stamp === stamp ? known : undefined;
    this.#held.set(seq, again === undefined ? { meta, delivery, hold, error } : { ...again, delivery, hold });
    const { key } = meta;
    const fit = this.#policy.isPoison(seq) ? "poisonous" : "delivered";
    this.#apply(this.#machine.step({ type: error === undefined ? fit : "misrouted", seq, key, stamp }));
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
    for (const run of this.#runs.values()) {
      if (!run.reportStuck()) continue;
      this.#tell({ type: "handler-stuck", key: run.key, seq: run.seq, error: handlerStuck(run) });
    }
  }

  /** The connection is back: until `letGo` nothing is answered, because it is not known what happened meanwhile. */
  holdBack(): void {
    if (this.#phase === "running") this.#phase = "held-back";
  }

  /**
   * Sends what was kept back. `again`: and the newest answer once more, which may have been lost with the old connection
   * and would hold up the lane for ackWait. Not to a server process that may have lost more than that (O2).
   */
  letGo(again: boolean): void {
    if (this.#phase !== "held-back") return;
    this.#phase = "running";
    if (again) this.#lastSettled?.send();
    for (const answer of this.#keptBack.splice(0)) answer.send();
  }

  /** Says of every handler that runs that another worker may have its event, too. */
  tellOverlap(error: LanekeeperError): void {
    for (const { key, seq } of this.#runs.values()) this.#tell({ type: "overlap-possible", key, seq, error });
  }

  /** The stream no longer has an event that is stuck here. */
  gone(seq: number): void {
    this.#apply(this.#machine.step({ type: "gone", seq }));
  }

  /** Consumer or stream were made anew: nothing in hand is ours. With `forget` also not what was settled. */
  reset(forget: boolean): void {
    this.#apply(this.#machine.step({ type: "reset", forget }));
    this.#held.clear();
    // Answers for the old consumer's events could settle others of the new one's.
    this.#keptBack.length = 0;
    this.#round++;
    this.#lastSettled = undefined;
    if (forget) this.#settledBelow = 0;
  }

  /** Goes on with another consumer, or with the same one after a drain. */
  restart(consumer: string): void {
    this.#consumer = consumer;
    this.#phase = "running";
    this.#keptBack.length = 0;
    this.#apply(this.#machine.step({ type: "reopened" }));
  }

  /** The feed is about to end this lane's pulls: until `finishDrain` nothing is answered. */
  beginDrain(): void {
    this.#phase = "draining";
    this.#acks.begin();
  }

  /** Sends the answers kept back, then gives back what has not begun. What runs is finished, its ack confirmed. */
  finishDrain(): void {
    this.#phase = "finishing";
    for (const answer of this.#keptBack.splice(0)) answer.send();
    this.#apply(this.#machine.step({ type: "closing", now: this.#host.clock.now() }));
    for (const [run, state] of [...this.#waiting]) this.#unwait(run, state);
  }

  /** Resolves when no handler runs. */
  ended(): Promise<void> {
    if (this.#runs.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#endWaiters.push(resolve));
  }

  /** Resolves when every ack since `finishDrain` has its answer: true when the server has confirmed them all. */
  acksConfirmed(): Promise<boolean> {
    return this.#acks.all();
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
    const { feed } = this.#host;
    switch (effect.type) {
      case "start": {
        const { seq, run, retries } = effect;
        this.#waiting.set(run, "gated");
        this.#policy.beforeStart(seq, () => this.#queue(seq, run, retries));
        break;
      }
      case "ack":
        this.#settledBelow = Math.max(this.#settledBelow, effect.seq + 1);
        this.#lastSettled = this.#answer(effect.seq, (delivery) => this.#ack(delivery));
        break;
      case "drop": {
        const reason = this.#held.get(effect.seq)?.error?.code ?? "HANDLER_FAILED";
        this.#settledBelow = Math.max(this.#settledBelow, effect.seq + 1);
        this.#tellOf(effect.seq, { type: "dropped" });
        this.#lastSettled = this.#answer(effect.seq, (delivery) => feed.drop(delivery, reason));
        break;
      }
      case "release":
        this.#answer(effect.seq, (delivery) => {
          if (this.#policy.tellsReleases) feed.release(delivery, effect.delayMs);
        });
        break;
      case "retry":
      case "blocked":
      case "misrouted":
      case "lost":
        this.#tellOf(effect.seq, { type: effect.type });
        break;
      case "poisonous": {
        const key = this.#held.get(effect.seq)?.meta.key ?? "";
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

  #queue(seq: number, run: number, retries: number): void {
    if (!this.#waiting.has(run)) return;
    this.#waiting.set(run, "queued");
    this.#host.slots.request(this.lane, { grant: () => this.#begin(seq, run, retries) });
  }

  /** A slot is ours: the last look at the hold before a handler starts (O6). */
  #begin(seq: number, run: number, retries: number): void {
    const { clock, slots } = this.#host;
    const wanted = this.#waiting.get(run) === "queued";
    this.#waiting.delete(run);
    const held = this.#held.get(seq);
    if (!wanted || held === undefined || held.hold.lapsed(clock.now(), clock.wall())) {
      if (wanted) {
        this.#lapse(seq);
        this.#apply(this.#machine.step({ type: "unstarted", run }));
        this.#policy.afterEnd(seq);
      }
      slots.release();
      return;
    }
    const { meta, delivery } = held;
    const handlerRun = new HandlerRun(meta.key, seq, clock);
    this.#runs.set(run, handlerRun);
    const fence = this.#policy.fence(delivery, this.#host.incarnation());
    const attempt = delivery.deliveries + retries;
    const event = attempt === meta.attempt ? meta : { ...meta, attempt };
    const isOurs = () => {
      const current = this.#held.get(seq);
      return current?.meta === meta && !current.hold.lapsed(clock.now(), clock.wall());
    };
    const { options, handler } = this.#host;
    this.#host.inTurn(() => {
      // O6: its turn may have come later.
      const outcome: ReturnType<HandlerRun["execute"]> = isOurs()
        ? handlerRun.execute(event, options, handler, fence, isOurs)
        : { type: "unstarted" };
      if (outcome instanceof Promise) void outcome.then((later) => this.#finish(seq, run, later));
      else this.#finish(seq, run, outcome);
    });
  }

  #finish(seq: number, run: number, outcome: RunOutcome): void {
    // Still known while it ends: a hold that ran out meanwhile is told of this run (O6).
    this.#ended(seq, run, outcome);
    this.#runs.delete(run);
    this.#policy.afterEnd(seq);
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
      const state = this.#waiting.get(run);
      if (state !== undefined) this.#unwait(run, state);
      return;
    }
    const text = this.#policy.lapseText(seq);
    const error = new LanekeeperError("FENCED", text);
    handlerRun.abort("FENCED", text);
    const about = { key: handlerRun.key, seq, error };
    this.#tell({ type: "fenced", ...about });
    this.#tell({ type: "overlap-possible", ...about });
  }

  /** A hold has lapsed: the event, or with it the whole lane, is not ours any more (O6). */
  #lapse(seq: number): void {
    this.#policy.letGo();
    if (this.#policy.lapses === "lane") return this.reset(false);
    this.#apply(this.#machine.step({ type: "lapsed", seq }));
    this.#held.delete(seq);
  }

  /** A run that has not begun will not begin. */
  #unwait(run: number, state: "gated" | "queued" | "taken"): void {
    // What was taken away while it waited for its slot has been told already.
    if (state === "taken") return;
    if (state === "gated") this.#waiting.delete(run);
    else this.#waiting.set(run, "taken");
    this.#apply(this.#machine.step({ type: "unstarted", run }));
  }

  /** An answer ends our hold of the event. */
  #answer(seq: number, send: (delivery: Delivery) => void): Answer | undefined {
    const held = this.#held.get(seq);
    this.#held.delete(seq);
    if (held === undefined) return undefined;
    const { delivery, hold } = held;
    const round = this.#round;
    const answer: Answer = {
      delivery,
      hold,
      send: () => {
        if (round !== this.#round) return;
        const { clock } = this.#host;
        // Also what was to go out soon when the connection came back, or the drain began.
        if (this.#phase === "held-back" || this.#phase === "draining") this.#keptBack.push(answer);
        else if (!hold.lapsed(clock.now(), clock.wall())) send(delivery);
      },
    };
    if (this.#phase === "running") this.#host.sendSoon(answer);
    else answer.send();
    return answer;
  }

  #ack(delivery: Delivery): void {
    const { feed } = this.#host;
    if (this.#phase === "finishing") this.#acks.add(feed.ackConfirmed(delivery));
    else feed.ack(delivery);
  }

  #tellOf(seq: number, notification: Pick<Notification, "type">): void {
    const held = this.#held.get(seq);
    const about = held?.meta.key ? { key: held.meta.key } : {};
    this.#tell({ ...notification, seq, ...about, ...(held?.error ? { error: held.error } : {}) });
  }

  #tell(notification: Omit<Notification, "at">): void {
    this.#host.notify({ ...notification, lane: this.lane });
  }
}
