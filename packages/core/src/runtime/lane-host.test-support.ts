import { LaneRouter, laneSubject } from "@lanekeeper/partitioner";
import type { Handler } from "../domain/event.js";
import { holdRules } from "../domain/hold.js";
import type { Notification } from "../domain/notification.js";
import { SlotQueue } from "../domain/slot-queue.js";
import { resolveWorkerOptions, type WorkerOptions } from "../domain/worker-options.js";
import type { Answer } from "./answer.js";
import type { Delivery, LaneFeed } from "./lane-feed-port.js";
import type { LaneHost, Turn } from "./lane-host.js";
import { LaneRunner } from "./lane-runner.js";
import { SharedPolicy } from "./shared-policy.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

/** A feed that writes down what is sent: "ack 1", "drop 1 TERMINAL", "release 1 after 200", "working 1". */
class FakeFeed implements LaneFeed {
  readonly sent: string[] = [];
  connected = true;
  /** Whether the server confirms what asks for it. */
  confirms = true;

  add(): void {}
  remove(): void {}
  close(): void {}
  async drain(): Promise<void> {}

  ack({ seq }: Delivery): boolean {
    return this.#send(`ack ${seq}`);
  }

  async ackConfirmed({ seq }: Delivery): Promise<boolean> {
    return this.#send(`ack ${seq} confirmed`) && this.confirms;
  }

  drop({ seq }: Delivery, reason: string): boolean {
    return this.#send(`drop ${seq} ${reason}`);
  }

  release({ seq }: Delivery, delayMs: number): boolean {
    return this.#send(`release ${seq} after ${delayMs}`);
  }

  working({ seq }: Delivery, confirmed: () => void): boolean {
    if (!this.#send(`working ${seq}`)) return false;
    if (this.confirms) confirmed();
    return true;
  }

  #send(what: string): boolean {
    if (this.connected) this.sent.push(what);
    return this.connected;
  }
}

/** One handler run that the test ends. */
export interface OpenRun {
  readonly seq: number;
  readonly key: string;
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly token: number;
  resolve(): void;
  reject(thrown: unknown): void;
}

const ackWaitMs = 10_000;
const layout = {
  subject: "orders",
  generation: 1,
  lanes: 1,
  hash: "murmur3",
  mapping: "publisher",
} as const;

/** One lane on a virtual clock, whose handlers end when the test says so. */
export class LaneScene {
  readonly clock = new VirtualClock();
  readonly feed = new FakeFeed();
  readonly told: Omit<Notification, "at">[] = [];
  readonly runs: OpenRun[] = [];
  readonly slots: SlotQueue;
  /** What the runner stands on, for other runners beside it. */
  readonly host: LaneHost;
  readonly policy: SharedPolicy;
  readonly runner: LaneRunner;
  /** Whether pings are answered: the proof is always fresh, or stays as it was. */
  pinged = true;
  /** Answers wait for the end of the turn: for the test to send what is in `soon`. Otherwise they go out at once. */
  sendsSoon = false;
  readonly soon: Answer[] = [];
  /** Handlers do not get their turns at once. */
  putsOff = false;
  readonly turns: Turn[] = [];
  /** Of each answer: whether the lane has to wait for it. */
  readonly urgent: boolean[] = [];
  /** How often all that the worker holds was to be looked at. */
  looks = 0;
  #proof = { at: 0, wall: 0 };

  constructor(options: Partial<WorkerOptions<Record<string, unknown>>> = {}) {
    const resolved = resolveWorkerOptions<Record<string, unknown>>(
      { group: "g", assignment: "shared", ackWaitMs, retry: { jitter: 0 }, ...options },
      "worker",
    );
    this.slots = new SlotQueue(resolved.concurrency);
    const handler: Handler<Record<string, unknown>> = (event, { signal, fence }) =>
      new Promise((resolve, reject) => {
        const { seq, key, attempt } = event;
        this.runs.push({ seq, key, attempt, signal, token: fence.token, resolve, reject });
      });
    this.host = {
      router: new LaneRouter(layout),
      options: resolved,
      handler,
      clock: this.clock,
      feed: this.feed,
      slots: this.slots,
      sendSoon: (answer, urgent) => {
        this.urgent.push(urgent);
        if (this.sendsSoon) this.soon.push(answer);
        else answer.send(this.clock.now(), this.clock.wall());
      },
      sendAnswers: () => {
        for (const answer of this.soon.splice(0)) answer.send(this.clock.now(), this.clock.wall());
      },
      inTurn: (turn) => {
        if (this.putsOff) this.turns.push(turn);
        else turn.take(false);
      },
      lookSoon: () => {
        this.looks++;
      },
      notify: (notification) => void this.told.push(notification),
      random: () => 0,
      incarnation: () => "incarnation",
    };
    this.policy = new SharedPolicy(holdRules(resolved.ackWaitMs), () => this.proof());
    this.runner = new LaneRunner(0, this.policy, this.host, "lk-g-g1-0");
  }

  proof(): { at: number; wall: number } {
    if (this.pinged) this.#proof = { at: this.clock.now(), wall: this.clock.wall() };
    return this.#proof;
  }

  deliver(seq: number, key = "k", more: Partial<Delivery> = {}, runner = this.runner): void {
    runner.delivered({
      consumer: runner.consumer,
      subject: laneSubject(layout, { key, type: "t" }),
      bytes: new TextEncoder().encode("{}"),
      headers: {},
      seq,
      deliverySeq: seq,
      deliveries: 1,
      stamp: `17670000000000000${String(seq).padStart(2, "0")}`,
      reply: `ack.${seq}`,
      ...more,
    });
  }

  tick(): void {
    this.runner.tick(this.clock.now(), this.clock.wall());
  }

  types(): string[] {
    return this.told.map(({ type }) => type);
  }

  /** The newest run. */
  last(): OpenRun {
    const run = this.runs.at(-1);
    if (run === undefined) throw new Error("no handler has started");
    return run;
  }

  async end(run: OpenRun = this.last()): Promise<void> {
    run.resolve();
    await this.clock.advance(0);
  }

  async fail(thrown: unknown, run: OpenRun = this.last()): Promise<void> {
    run.reject(thrown);
    await this.clock.advance(0);
  }

  settle(): Promise<void> {
    return this.clock.advance(0);
  }
}
