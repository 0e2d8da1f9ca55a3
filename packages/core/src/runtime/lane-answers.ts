import { AckConfirmations } from "./ack-confirmations.js";
import { Answer, type AnswerDesk, type AnswerKind } from "./answer.js";
import type { DeliveredEvent } from "./delivered-event.js";
import type { LaneHost } from "./lane-host.js";
import type { LanePolicy } from "./lane-policy.js";

/** What a lane has in hand. */
export interface LaneLoad {
  /** Events delivered and not settled. */
  readonly held: number;
  /** Handlers that may end soon. */
  readonly running: number;
}

/** What one lane answers to its consumer, and when: at the end of the turn, once it is known what happened meanwhile, or never. */
export class LaneAnswers implements AnswerDesk {
  readonly #host: LaneHost;
  readonly #policy: Pick<LanePolicy, "tellsReleases" | "letGo">;
  readonly #keptBack: Answer[] = [];
  readonly #acks = new AckConfirmations();
  /** Draining: answers are kept, because an ack would bring the next event. Finishing: acks are confirmed. */
  #phase: "running" | "draining" | "finishing" = "running";
  /** Answers are kept, because what they would do is not known yet. */
  #heldBack = false;
  /** The newest event settled here; answering it twice does no harm, as giving one back twice would. */
  #lastSettled: Answer | undefined;
  #unsent = 0;
  /** Counts resets: answers from before one are not sent any more. */
  #round = 0;

  constructor(host: LaneHost, policy: Pick<LanePolicy, "tellsReleases" | "letGo">) {
    this.#host = host;
    this.#policy = policy;
  }

  /** `delayMs` is a release's, `reason` a drop's. */
  give(event: DeliveredEvent, load: LaneLoad, kind: AnswerKind, delayMs: number, reason: string): void {
    const answer = new Answer(this, kind, event, this.#round, delayMs, reason);
    if (kind !== "release") this.#lastSettled = answer;
    if (this.#phase === "running" && !this.#heldBack) this.#host.sendSoon(answer, this.#isUrgent(load));
    else this.#sendNow(answer);
  }

  /** An event was settled that is not in hand any more: there is nothing to say again. */
  settledUnheld(): void {
    this.#lastSettled = undefined;
  }

  /**
   * Whether the lane has to wait for this answer. The server may not deliver when about as much is unsettled as may be; that is
   * no matter as long as more handlers run here than answers wait.
   */
  #isUrgent({ held, running }: LaneLoad): boolean {
    const unsent = ++this.#unsent;
    return (held + unsent) * 2 >= this.#host.options.maxAckPending && unsent * 2 >= running;
  }

  send(answer: Answer, now: number, wall: number): void {
    // The host sends all that waits.
    this.#unsent = 0;
    if (answer.round !== this.#round) return;
    // Also what was to go out soon when the connection came back, or the drain began.
    if (this.#heldBack || this.#phase === "draining") this.#keptBack.push(answer);
    else if (!answer.hold.lapsed(now, wall)) this.#tell(answer);
    // It is settled here, but the server does not know: it has to come again.
    else {
      this.#policy.letGo();
      this.#host.lookSoon();
    }
  }

  holdBack(): void {
    this.#heldBack = true;
  }

  /** Sends what was kept back; `again`: and the newest answer once more. */
  letGo(again: boolean): void {
    if (!this.#heldBack) return;
    this.#heldBack = false;
    if (this.#phase === "draining") return;
    if (again && this.#lastSettled !== undefined) this.#sendNow(this.#lastSettled);
    this.#sendKept();
  }

  beginDrain(): void {
    this.#phase = "draining";
    this.#acks.begin();
  }

  /** From here on acks are confirmed, those that were kept back first. */
  finish(): void {
    // What still waits is kept back with the rest, so that it is confirmed with the rest.
    this.#host.sendAnswers();
    this.#phase = "finishing";
    if (!this.#heldBack) this.#sendKept();
  }

  /** Answers for the old consumer's events could settle others of the new one's. */
  reset(): void {
    this.#keptBack.length = 0;
    this.#round++;
    this.#lastSettled = undefined;
  }

  restart(): void {
    this.#phase = "running";
    this.#heldBack = false;
    this.#keptBack.length = 0;
  }

  /** Resolves when every ack since `finish` has its answer: true when the server has confirmed them all. */
  acksConfirmed(): Promise<boolean> {
    return this.#acks.all();
  }

  #sendKept(): void {
    for (const answer of this.#keptBack.splice(0)) this.#sendNow(answer);
  }

  #sendNow(answer: Answer): void {
    this.send(answer, this.#host.clock.now(), this.#host.clock.wall());
  }

  #tell({ kind, delivery, delayMs, reason }: Answer): void {
    const { feed } = this.#host;
    if (kind === "drop") feed.drop(delivery, reason);
    else if (kind === "release") {
      if (this.#policy.tellsReleases) feed.release(delivery, delayMs);
    } else if (this.#phase === "finishing") this.#acks.add(feed.ackConfirmed(delivery));
    else feed.ack(delivery);
  }
}
