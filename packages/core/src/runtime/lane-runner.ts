import type { LaneRouter } from "@lanekeeper/partitioner";
import type { Handler } from "../domain/event.js";
import { sharedFenceToken } from "../domain/fence-token.js";
import { Hold, type HoldRules } from "../domain/hold.js";
import { type LaneEffect, LaneMachine } from "../domain/lane-machine.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Notification } from "../domain/notification.js";
import type { SlotQueue } from "../domain/slot-queue.js";
import type { ResolvedWorkerOptions } from "../domain/worker-options.js";
import type { Clock, Timer } from "./clock.js";
import { readDelivery, type TypedMeta } from "./delivered-event.js";
import { HandlerRun, type RunOutcome } from "./handler-run.js";
import type { Delivery, LaneFeed } from "./lane-feed-port.js";
import type { Notify } from "./notifier.js";

/** A moment, on both clocks, of which it is known that the server was heard after it. */
export interface Proof {
  readonly at: number;
  readonly wall: number;
}

/** What a lane shares with the other lanes of its worker. */
export interface LaneHost {
  readonly router: LaneRouter;
  readonly options: ResolvedWorkerOptions;
  readonly handler: Handler<Record<string, unknown>>;
  readonly clock: Clock;
  readonly feed: LaneFeed;
  readonly slots: SlotQueue;
  readonly notify: Notify;
  readonly random: () => number;
  incarnation(): string;
  /** The send time of the newest answered ping. */
  proof(): Proof;
  /** While true, answers to events are kept back: the feed is draining, and an ack would bring the next event. */
  answersHeldBack(): boolean;
  /** Acks are confirmed by the server from now on, and close() waits for them. */
  confirmsAcks(): boolean;
  awaitAck(confirmation: Promise<boolean>): void;
}

interface Held {
  readonly meta: TypedMeta;
  delivery: Delivery;
  hold: Hold;
  /** Why the event failed last, or is not handled at all. */
  error: LanekeeperError | undefined;
}

/** An answer to a delivery, to be sent as long as the event is ours. */
interface Answer {
  readonly delivery: Delivery;
  readonly hold: Hold;
  send(delivery: Delivery): void;
}

/** Connects one lane's machine with deliveries, handlers and answers. Decides nothing itself but what time it is. */
export class LaneRunner {
  readonly lane: number;
  readonly consumer: string;
  readonly #host: LaneHost;
  readonly #machine: LaneMachine;
  readonly #held = new Map<number, Held>();
  readonly #runs = new Map<number, HandlerRun>();
  /** Runs that wait for a slot; false: the event was taken away meanwhile. */
  readonly #waiting = new Map<number, boolean>();
  readonly #keptBack: Answer[] = [];
  #rules: HoldRules;
  /** The newest event settled here; answering it twice does no harm, as giving one back twice would. */
  #lastSettled: Answer | undefined;
  #wake: { at: number; timer: Timer } | undefined;
  #settledBelow = 0;

  constructor(lane: number, consumer: string, rules: HoldRules, host: LaneHost) {
    this.lane = lane;
    this.consumer = consumer;
    this.#rules = rules;
    this.#host = host;
    this.#machine = new LaneMachine(host.options);
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

  set rules(rules: HoldRules) {
    this.#rules = rules;
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
    const { at, wall } = this.#host.proof();
    const hold = new Hold(this.#rules, at, wall);
    // O6: it may have waited so long on its way that the server has given it to another; it comes again.
    if (hold.lapsed(this.#host.clock.now(), this.#host.clock.wall())) {
      return this.#tell({ type: "fenced", seq, error: staleDelivery(seq) });
    }
    // With MaxAckPending 1 nothing is delivered before all that is below it is settled.
    this.#settledBelow = Math.max(this.#settledBelow, seq);
    const { meta, error } = readDelivery(this.#host.router, this.lane, delivery);
    const known = this.#held.get(seq);
    const again = known?.delivery.stamp === stamp ? known : undefined;
    this.#held.set(seq, again === undefined ? { meta, delivery, hold, error } : { ...again, delivery, hold });
    const { key } = meta;
    this.#apply(
      this.#machine.step({ type: error === undefined ? "delivered" : "misrouted", seq, key, stamp }),
    );
  }

  /** Keeps what is held alive, lets go of what has lapsed, and says which handlers are stuck. Call it on every tick. */
  tick(now: number, wall: number): void {
    for (const [seq, held] of this.#held) {
      if (held.hold.lapsed(now, wall)) {
        this.#apply(this.#machine.step({ type: "lapsed", seq }));
        this.#held.delete(seq);
      } else if (held.hold.wantsWorking(now)) {
        const { hold, delivery } = held;
        if (this.#host.feed.working(delivery, () => hold.confirmed(now, wall))) hold.workingSent(now);
      }
    }
    for (const run of this.#runs.values()) {
      if (!run.reportStuck()) continue;
      const text = `the handler of key "${run.key}" has run for ${Math.round(run.ageMs)} ms and ignores its signal`;
      this.#tell({
        type: "handler-stuck",
        key: run.key,
        seq: run.seq,
        error: new LanekeeperError("HANDLER_STUCK", text),
      });
    }
  }

  /** The connection is back: the newest answer may have been lost with the old one, and the lane would wait for ackWait. */
  reconnected(): void {
    if (this.#lastSettled !== undefined) this.#sendIfOurs(this.#lastSettled);
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
    this.#lastSettled = undefined;
    if (forget) this.#settledBelow = 0;
  }

  /** Sends the answers kept back while the feed was draining, then gives back what has not begun. */
  close(): void {
    for (const answer of this.#keptBack.splice(0)) this.#sendIfOurs(answer);
    this.#apply(this.#machine.step({ type: "closing", now: this.#host.clock.now() }));
    for (const [run, wanted] of [...this.#waiting]) {
      // What was taken away while it waited has been told already.
      if (!wanted) continue;
      this.#waiting.set(run, false);
      this.#apply(this.#machine.step({ type: "unstarted", run }));
    }
  }

  abortRuns(code: "CLOSING" | "FENCED", message: string): void {
    for (const run of this.#runs.values()) run.abort(code, message);
  }

  stop(): void {
    this.#wake?.timer.stop();
    this.#wake = undefined;
  }

  #apply(effects: readonly LaneEffect[]): void {
    for (const effect of effects) this.#do(effect);
  }

  #do(effect: LaneEffect): void {
    const { feed, clock } = this.#host;
    switch (effect.type) {
      case "start": {
        const { seq, run, retries } = effect;
        this.#waiting.set(run, true);
        this.#host.slots.request({ grant: () => this.#begin(seq, run, retries) });
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
        this.#answer(effect.seq, (delivery) => feed.release(delivery, effect.delayMs));
        break;
      case "retry":
      case "blocked":
      case "misrouted":
      case "lost":
        this.#tellOf(effect.seq, { type: effect.type });
        break;
      case "fence":
        this.#fence(effect.seq, effect.run);
        break;
      case "wake":
        this.#wakeAt(effect.at, clock.now());
        break;
    }
  }

  /** A slot is ours: the last look at the hold before a handler starts (O6). */
  #begin(seq: number, run: number, retries: number): void {
    const { clock, slots } = this.#host;
    const wanted = this.#waiting.get(run);
    this.#waiting.delete(run);
    const held = this.#held.get(seq);
    if (wanted !== true || held === undefined || held.hold.lapsed(clock.now(), clock.wall())) {
      if (wanted === true) {
        this.#apply(this.#machine.step({ type: "lapsed", seq }));
        this.#held.delete(seq);
        this.#apply(this.#machine.step({ type: "unstarted", run }));
      }
      slots.release();
      return;
    }
    const { meta, delivery } = held;
    const handlerRun = new HandlerRun(meta.key, seq, clock);
    this.#runs.set(run, handlerRun);
    const token = sharedFenceToken(seq, delivery.deliveries);
    const fence = Object.freeze({ token, incarnation: this.#host.incarnation() });
    const event = { ...meta, attempt: delivery.deliveries + retries };
    const isOurs = () => {
      const current = this.#held.get(seq);
      return current?.meta === meta && !current.hold.lapsed(clock.now(), clock.wall());
    };
    void handlerRun.execute(event, this.#host.options, this.#host.handler, fence, isOurs).then((outcome) => {
      // Still known while it ends: a hold that ran out meanwhile is told of this run (O6).
      this.#ended(seq, run, outcome);
      this.#runs.delete(run);
      slots.release();
    });
  }

  #ended(seq: number, run: number, outcome: RunOutcome): void {
    const { clock } = this.#host;
    // O6: the hold may have run out while this process was not looking.
    const held = this.#held.get(seq);
    if (held?.hold.lapsed(clock.now(), clock.wall())) {
      this.#apply(this.#machine.step({ type: "lapsed", seq }));
      this.#held.delete(seq);
    }
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
      if (this.#waiting.has(run)) {
        this.#waiting.set(run, false);
        this.#apply(this.#machine.step({ type: "unstarted", run }));
      }
      return;
    }
    const text = `the hold of event ${seq} was not confirmed in time; the server may have given it to another worker`;
    const error = new LanekeeperError("FENCED", text);
    handlerRun.abort("FENCED", text);
    const about = { key: handlerRun.key, seq, error };
    this.#tell({ type: "fenced", ...about });
    this.#tell({ type: "overlap-possible", ...about });
  }

  /** An answer ends our hold of the event. */
  #answer(seq: number, send: (delivery: Delivery) => void): Answer | undefined {
    const held = this.#held.get(seq);
    this.#held.delete(seq);
    if (held === undefined) return undefined;
    const answer = { delivery: held.delivery, hold: held.hold, send };
    if (this.#host.answersHeldBack()) this.#keptBack.push(answer);
    else this.#sendIfOurs(answer);
    return answer;
  }

  #sendIfOurs(answer: Answer): void {
    const { clock } = this.#host;
    if (!answer.hold.lapsed(clock.now(), clock.wall())) answer.send(answer.delivery);
  }

  #ack(delivery: Delivery): void {
    const { feed } = this.#host;
    if (this.#host.confirmsAcks()) this.#host.awaitAck(feed.ackConfirmed(delivery));
    else feed.ack(delivery);
  }

  #wakeAt(at: number, now: number): void {
    if (this.#wake !== undefined && this.#wake.at <= at) return;
    this.#wake?.timer.stop();
    const timer = this.#host.clock.after(Math.max(at - now, 0), () => {
      this.#wake = undefined;
      // A timer may fire a fraction of a millisecond early; `at` is what the machine waits for.
      this.#apply(this.#machine.step({ type: "tick", now: Math.max(at, this.#host.clock.now()) }));
    });
    this.#wake = { at, timer };
  }

  #tellOf(seq: number, notification: Pick<Notification, "type">): void {
    const held = this.#held.get(seq);
    const key = held?.meta.key;
    this.#tell({
      ...notification,
      seq,
      ...(key ? { key } : {}),
      ...(held?.error ? { error: held.error } : {}),
    });
  }

  #tell(notification: Omit<Notification, "at">): void {
    this.#host.notify({ ...notification, lane: this.lane });
  }
}

function staleDelivery(seq: number): LanekeeperError {
  const text = `event ${seq} arrived so late that the server may have given it to another worker; it is left to come again`;
  return new LanekeeperError("FENCED", text);
}
