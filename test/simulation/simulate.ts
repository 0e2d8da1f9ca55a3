import type { LaneEvent } from "../../packages/core/src/domain/event.js";
import type { LaneWorker } from "../../packages/core/src/runtime/lane-worker.js";
import { checkComplete } from "../harness/checkers/check-complete.js";
import { checkNoGap } from "../harness/checkers/check-no-gap.js";
import { checkOrder } from "../harness/checkers/check-order.js";
import type { HistoryRecord, StoredEvent } from "../harness/history-record.js";
import { planFaults } from "./fault-schedule.js";
import { LaneJudge } from "./lane-judge.js";
import { overlapsOf } from "./overlaps.js";
import type { PlantedFault } from "./planted-faults.js";
import { Random } from "./random.js";
import { type HandlerPlan, type Scenario, scenarioOf } from "./scenario.js";
import { SimHistory } from "./sim-history.js";
import { SimLink } from "./sim-link.js";
import { SimProcess } from "./sim-process.js";
import { SimServer } from "./sim-server.js";
import { type PortWrappers, startSimWorker } from "./sim-worker.js";
import { Timeline } from "./timeline.js";

const group = "billing";

/** One fault of a run, whichever way it was found. */
export interface RunFault {
  readonly invariant: string;
  readonly text: string;
}

export interface RunResult {
  readonly seed: number;
  readonly scenario: Scenario;
  readonly faults: readonly RunFault[];
  /** Overlaps that the design states as what physics leaves. */
  readonly statedOverlaps: number;
  readonly history: readonly HistoryRecord[];
  readonly stored: readonly StoredEvent[];
  readonly virtualMs: number;
  readonly steps: number;
}

/** How long everything may take after the last fault, in virtual milliseconds. */
const settleMs = 60_000;
const restartMs = 300;
/** Deaths after which a poisonous event has to be found out: its limit of three, and as many by coincidence and more. */
const mostDeaths = 12;

/** One process of the simulated deployment and what runs in it. */
export interface SimMember {
  readonly process: SimProcess;
  readonly link: SimLink;
  worker: LaneWorker | undefined;
  leaving: boolean;
}

/** A whole deployment in virtual time. */
export class Simulation {
  readonly scenario: Scenario;
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly server: SimServer;
  readonly history: SimHistory;
  readonly judge: LaneJudge;
  readonly members: SimMember[] = [];
  readonly #wrappers: PortWrappers;
  readonly #plans = new Map<number, HandlerPlan>();
  readonly #handled = new Set<number>();
  #starts = 0;
  #published = 0;
  #open = false;
  #poisoned = 0;
  /** No more faults: what is killed now is not started again. */
  over = false;

  constructor(given: Scenario, planted: PlantedFault | undefined) {
    // Copies, because the weather changes: see `#calm`.
    const { network, server, ports } = given;
    const scenario = { ...given, network: { ...network }, server: { ...server }, ports: { ...ports } };
    this.scenario = scenario;
    this.#wrappers = planted?.wrappers ?? {};
    this.random = new Random(scenario.seed ^ 0x51ed);
    const { lanes, retention, replicas, leaseMs, assignment } = scenario;
    const layout = {
      subject: "orders",
      generation: 1,
      lanes,
      hash: "murmur3",
      mapping: "publisher",
    } as const;
    const stream = { name: "ORDERS", layout, retention, replicas };
    this.server = new SimServer(this.timeline, this.random.fork(), stream, scenario.server);
    planted?.server?.(this.server);
    this.history = new SimHistory(this.timeline);
    this.judge = new LaneJudge(this.server, { group, lanes, leaseMs, owned: assignment === "owned" });
  }

  /** Starts another process with a worker; a start that fails ends its process, and another one is started. */
  start(): SimMember {
    const process = new SimProcess(`w${++this.#starts}`, this.timeline);
    const link = new SimLink(process, this.timeline, this.random.fork(), this.scenario.network);
    const member: SimMember = { process, link, worker: undefined, leaving: false };
    this.members.push(member);
    this.history.add("test", { kind: "started", about: process.name, pid: this.#starts });
    process.receive(() => {
      const random = this.random.fork();
      const { server, judge, scenario } = this;
      const notify = () => {};
      const parts = { link, server, random, judge, notify, rules: scenario.ports, wrappers: this.#wrappers };
      startSimWorker(parts, this.#workerOptions(process), (event, context) =>
        this.#handle(process, event, context),
      ).then(
        (worker) => {
          member.worker = worker;
          void worker.closed.then((reason) => {
            if (!process.alive) return;
            this.history.add(process.name, { kind: "note", text: `ended: ${reason.type}` });
            this.#exit(member);
          });
        },
        (error: unknown) => {
          if (!process.alive) return;
          this.history.add(process.name, { kind: "note", text: `start failed: ${String(error)}` });
          this.#exit(member);
        },
      );
    });
    return member;
  }

  kill(member: SimMember): void {
    if (!member.process.alive) return;
    this.history.add("test", { kind: "killed", about: member.process.name });
    member.process.kill();
    this.#replaceSoon();
  }

  freeze(member: SimMember, suspended: boolean): void {
    if (member.process.state !== "running") return;
    this.history.add("test", {
      kind: "frozen",
      about: member.process.name,
      why: suspended ? "suspended" : "SIGSTOP",
    });
    member.process.freeze(suspended);
  }

  thaw(member: SimMember): void {
    if (member.process.state !== "frozen") return;
    this.history.add("test", { kind: "thawed", about: member.process.name });
    member.process.thaw();
  }

  /** As a rolling deploy does: a new one first, then the old one ends in good order. */
  restart(member: SimMember, graceMs: number, surge: boolean): void {
    const { worker, process } = member;
    if (worker === undefined || member.leaving || process.state !== "running") return;
    member.leaving = true;
    if (surge) this.start();
    process.receive(() => void worker.close({ graceMs }));
  }

  get live(): SimMember[] {
    return this.members.filter(({ process }) => process.alive);
  }

  async run(): Promise<void> {
    const { scenario, timeline, random } = this;
    for (let i = 0; i < scenario.processes; i++) {
      timeline.plan(random.between(0, 400), () => this.start());
    }
    const keys = Array.from({ length: scenario.keys }, (_, n) => `key-${n}`);
    for (let i = 0; i < scenario.events; i++) {
      // Few keys have most of the events.
      const key = keys[Math.floor(random.next() ** 2 * keys.length)] ?? "key-0";
      timeline.plan(random.between(600, scenario.faultsMs + 500), () => this.#publish(key));
    }
    planFaults(this, random.fork());
    timeline.plan(scenario.faultsMs + 200, () => this.#calm());
    const deadline = scenario.faultsMs + settleMs;
    let settledAt: number | undefined;
    let looked = 0;
    await timeline.run(() => {
      const { now } = timeline;
      if (now > deadline) return true;
      if (now - looked < 50) return false;
      looked = now;
      if (!this.#settled()) settledAt = undefined;
      else settledAt ??= now;
      return settledAt !== undefined && now - settledAt > 500;
    });
    this.over = true;
    this.#judgeEnd(settledAt !== undefined);
    for (const { process } of this.members) process.kill();
    await new Promise((resolve) => setImmediate(resolve));
  }

  #publish(key: string): void {
    // With interest retention the server drops what no consumer wants: publishers start once the group is there.
    const lanes = new Set([...this.server.consumers].map(({ spec }) => spec.lane));
    this.#open ||= this.scenario.retention !== "interest" || lanes.size === this.scenario.lanes;
    if (!this.#open) return void this.timeline.after(100, () => this.#publish(key));
    this.#published++;
    this.server.publish(key);
  }

  /** From now on nothing is lost and nothing late, so that whatever does not settle is a fault of ours. */
  #calm(): void {
    const { network, server, ports } = this.scenario;
    Object.assign(network, { pauseChance: 0 });
    Object.assign(server, { lostDelivery: 0, lostAck: 0, lostAnswer: 0 });
    Object.assign(ports, { watchLagMs: 50, silentWatch: 0 });
  }

  /** Everything is handled, and every lane has its owner. */
  #settled(): boolean {
    const { scenario, timeline } = this;
    if (timeline.now < scenario.faultsMs || this.#published < scenario.events) return false;
    if (this.server.stream.events.some(({ seq }) => !this.#handled.has(seq) && this.#counts(seq)))
      return false;
    return this.#unbalanced() === undefined;
  }

  /** Whether the group is to handle this event: not from before its start, and not what waits behind a poisonous one. */
  #counts(seq: number): boolean {
    return seq >= this.startSeq && !this.waitsForever(seq);
  }

  /** Its key waits behind the poisonous event, and with it, once MaxAckPending is used up, the lane. */
  waitsForever(seq: number): boolean {
    const { events } = this.server.stream;
    const poison = events[(this.scenario.poison ?? 0) - 1];
    return poison !== undefined && seq >= poison.seq && events[seq - 1]?.lane === poison.lane;
  }

  get startSeq(): number {
    const entry = this.server.bucket.read(`${group}.group`);
    if (entry?.value !== undefined) return (JSON.parse(entry.value) as { startSeq: number }).startSeq;
    for (const { spec } of this.server.consumers) return spec.groupStartSeq;
    return 1;
  }

  #unbalanced(): string | undefined {
    if (this.scenario.assignment === "shared") return undefined;
    const workers = this.live.filter(({ leaving }) => !leaving);
    const lists = workers.map(({ worker, process }) => ({
      name: process.name,
      lanes: worker?.lanes() ?? [],
    }));
    const sizes = lists.map(({ lanes }) => lanes.length);
    const owned = lists.flatMap(({ lanes }) => lanes).sort((a, b) => a - b);
    const all = owned.length === this.scenario.lanes && new Set(owned).size === owned.length;
    if (all && Math.max(...sizes) - Math.min(...sizes) <= 1) return undefined;
    return lists.map(({ name, lanes }) => `${name}: ${lanes.join(" ")}`).join("; ");
  }

  #judgeEnd(settled: boolean): void {
    if (settled) return;
    const { server } = this;
    const missing = server.stream.events.filter(({ seq }) => !this.#handled.has(seq) && this.#counts(seq));
    const lanes = this.#unbalanced();
    const atMs = this.timeline.now;
    if (missing.length > 0)
      this.judge.faults.push({
        invariant: "O4",
        atMs,
        text: `never settled: ${missing.map(({ seq, lane }) => `${seq} (lane ${lane})`).join(", ")}`,
      });
    if (lanes !== undefined)
      this.judge.faults.push({
        invariant: "O4",
        atMs,
        text: `lanes are not owned or not balanced: ${lanes}`,
      });
  }

  #exit(member: SimMember): void {
    this.history.add("test", { kind: "exited", about: member.process.name, code: 0, signal: null });
    member.process.kill();
    this.#replaceSoon();
  }

  #replaceSoon(): void {
    if (this.over) return;
    this.timeline.after(this.random.between(50, restartMs), () => {
      const wanted = this.live.filter(({ leaving }) => !leaving).length;
      if (!this.over && wanted < this.scenario.processes) this.start();
    });
  }

  #workerOptions(process: SimProcess) {
    const { assignment, maxAckPending, concurrency, ackWaitMs, leaseMs, onExhausted, startNew } =
      this.scenario;
    return {
      group,
      assignment,
      name: process.name,
      concurrency,
      ackWaitMs,
      onExhausted,
      ...(assignment === "owned" ? { leaseMs, maxAckPending } : {}),
      ...(startNew ? { deliverPolicy: "new" as const } : {}),
      retry: { attempts: 4, initialDelayMs: 40, maxDelayMs: 400 },
      onNotification: (fact: {
        type: string;
        lane?: number;
        key?: string;
        seq?: number;
        error?: { code: string; message: string };
      }) => {
        const { type, lane, key, seq, error } = fact;
        if (type === "dropped" && seq !== undefined) this.#handled.add(seq);
        this.history.add(process.name, {
          kind: "notification",
          type,
          group,
          ...(lane === undefined ? {} : { lane }),
          ...(key === undefined ? {} : { key }),
          ...(seq === undefined ? {} : { seq }),
          ...(error === undefined ? {} : { code: error.code, message: error.message }),
        });
      },
    };
  }

  async #handle(
    process: SimProcess,
    event: LaneEvent<Record<string, unknown>>,
    context: { readonly signal: AbortSignal; readonly fence: { readonly token: number } },
  ): Promise<void> {
    const { key, seq, lane, attempt } = event;
    const plan = this.#planOf(seq);
    this.judge.started(process.name, lane, seq, context.fence.token, this.#handled.has(seq));
    const run = this.history.startRun(process.name, {
      group,
      key,
      seq,
      lane,
      attempt,
      data: { fence: context.fence.token },
    });
    if (seq === this.scenario.poison) return this.#die(process);
    const tries = this.history.triesOf(seq);
    const aborted = await this.#work(process, plan, context.signal, run);
    const failed = tries <= plan.failures || (aborted && !plan.stubborn);
    this.history.add(process.name, {
      kind: "handler-end",
      run,
      group,
      key,
      seq,
      outcome: failed ? "failed" : "handled",
    });
    if (failed) throw new Error(aborted ? "aborted" : "planned failure");
    this.#handled.add(seq);
  }

  /** What a poisonous event does to its process. */
  #die(process: SimProcess): Promise<never> {
    process.clock.after(2, () => {
      const member = this.members.find((one) => one.process === process);
      if (member === undefined || !process.alive) return;
      if (++this.#poisoned === mostDeaths)
        this.judge.faults.push({
          invariant: "O4",
          atMs: this.timeline.now,
          text: `event ${this.scenario.poison} killed ${mostDeaths} processes and was not found out`,
        });
      this.kill(member);
    });
    return new Promise(() => {});
  }

  /** Resolves when the work is done, or at once when the signal aborts: true then. */
  #work(process: SimProcess, plan: HandlerPlan, signal: AbortSignal, run: number): Promise<boolean> {
    return new Promise((resolve) => {
      let aborted = signal.aborted;
      const timer = process.clock.after(plan.ms, () => resolve(aborted));
      const abort = () => {
        aborted = true;
        this.history.aborted(process.name, run);
        if (plan.stubborn) return;
        timer.stop();
        resolve(true);
      };
      if (aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
  }

  #planOf(seq: number): HandlerPlan {
    const known = this.#plans.get(seq);
    if (known !== undefined) return known;
    const { slowHandlers, failingHandlers, stubbornHandlers, seed } = this.scenario;
    const random = new Random(seed * 8_191 + seq);
    const slow = random.chance(slowHandlers);
    const plan: HandlerPlan = {
      ms: slow ? random.between(200, 3_000) : random.between(1, 40),
      failures: random.chance(failingHandlers) ? random.int(1, 5) : 0,
      stubborn: random.chance(stubbornHandlers),
    };
    this.#plans.set(seq, plan);
    return plan;
  }
}

/** Runs one seed's world to its end and judges what happened. */
export async function simulate(seed: number, planted?: PlantedFault): Promise<RunResult> {
  const scenario = scenarioOf(seed);
  const simulation = new Simulation(scenario, planted);
  const undo = planted?.patch?.(simulation.server);
  try {
    await simulation.run();
  } finally {
    undo?.();
  }
  const { judge, history, server, timeline } = simulation;
  const records = history.records;
  const from = simulation.startSeq;
  const stored = server.stream.stored().filter(({ seq }) => seq >= from);
  const { faults: overlaps, stated } = overlapsOf(records, history.aborts);
  const faults: RunFault[] = [
    ...judge.faults.map(({ invariant, text, atMs }) => ({ invariant, text: `${atMs.toFixed(1)}: ${text}` })),
    ...checkOrder(records),
    ...overlaps,
    ...checkNoGap(records, stored),
    ...checkComplete(
      records,
      stored.filter(({ seq }) => !simulation.waitsForever(seq)),
      [group],
    ).faults.filter(({ seqs: [seq = 0] }) => !simulation.waitsForever(seq)),
  ];
  const { now: virtualMs, steps } = timeline;
  return { seed, scenario, faults, statedOverlaps: stated, history: records, stored, virtualMs, steps };
}
