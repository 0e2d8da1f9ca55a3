import { SeededRandom } from "../harness/seeded-random.js";
import { planFaults } from "./fault-schedule.js";
import { LaneJudge } from "./lane-judge.js";
import type { PlantedFault } from "./planted-faults.js";
import type { Scenario } from "./scenario.js";
import { SimHandlers } from "./sim-handlers.js";
import { SimHistory } from "./sim-history.js";
import { SimLink } from "./sim-link.js";
import type { SimMember } from "./sim-member.js";
import { SimProcess } from "./sim-process.js";
import { SimServer } from "./sim-server.js";
import { SimSettlement } from "./sim-settlement.js";
import { type PortWrappers, startSimWorker } from "./sim-worker.js";
import { Timeline } from "./timeline.js";

/** The one group of the deployment. */
export const group = "billing";

/** How long everything may take after the last fault, in virtual milliseconds. */
const settleMs = 60_000;
const restartMs = 300;
/** A whole deployment in virtual time. */
export class Simulation {
  readonly scenario: Scenario;
  readonly timeline = new Timeline();
  readonly random: SeededRandom;
  readonly server: SimServer;
  readonly history: SimHistory;
  readonly judge: LaneJudge;
  readonly members: SimMember[] = [];
  readonly settlement: SimSettlement;
  readonly #handlers: SimHandlers;
  readonly #wrappers: PortWrappers;
  #starts = 0;
  #published = 0;
  #open = false;
  /** No more faults: what is killed now is not started again. */
  over = false;

  constructor(given: Scenario, planted: PlantedFault | undefined) {
    // Copies, because the weather changes: see `#calm`.
    const { network, server, ports } = given;
    const scenario = { ...given, network: { ...network }, server: { ...server }, ports: { ...ports } };
    this.scenario = scenario;
    this.#wrappers = planted?.wrappers ?? {};
    this.random = new SeededRandom(scenario.seed ^ 0x51ed);
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
    const { timeline, history, judge } = this;
    this.#handlers = new SimHandlers({
      group,
      scenario,
      timeline,
      history,
      judge,
      kill: (process) => {
        for (const member of this.members) if (member.process === process) this.kill(member);
      },
    });
    this.settlement = new SimSettlement({
      group,
      scenario,
      timeline,
      server: this.server,
      judge,
      handlers: this.#handlers,
      live: () => this.live,
    });
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
        this.#handlers.handle(process, event, context),
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
      if (!this.settlement.reached(this.#published)) settledAt = undefined;
      else settledAt ??= now;
      return settledAt !== undefined && now - settledAt > 500;
    });
    this.over = true;
    if (settledAt === undefined) this.settlement.judgeMissing();
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
        if (type === "dropped" && seq !== undefined) this.#handlers.settled.add(seq);
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
}
