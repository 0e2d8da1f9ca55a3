import type { SeededRandom } from "../harness/seeded-random.js";
import type { SimProcess } from "./sim-process.js";
import type { Timeline } from "./timeline.js";

/** How a network is, in milliseconds. */
export interface NetworkRules {
  readonly fastest: number;
  readonly slowest: number;
  /** How often a message meets a pause, and of how long at most. */
  readonly pauseChance: number;
  readonly longestPause: number;
}

/** Runs something in the process that asked, if the connection over which it asked still stands. */
export type Reply = (run: () => void) => void;

/**
 * A process's connection to the server. Each way keeps its order, as TCP does. A stall holds everything back for a while;
 * a break loses what is under way, both ways, and the client waits with what it sends until it is connected again.
 */
export class SimLink {
  readonly process: SimProcess;
  readonly #timeline: Timeline;
  readonly #random: SeededRandom;
  readonly #rules: NetworkRules;
  #connected = true;
  /** Rises with every break: what was sent over an earlier connection never arrives. */
  #number = 1;
  #toServerAt = 0;
  #toClientAt = 0;
  #stalledUntil = 0;
  /** What the client sends while it is not connected. */
  readonly #waiting: ((reply: Reply) => void)[] = [];
  readonly #observers = new Set<(change: "disconnected" | "reconnected") => void>();
  /** Subscribes again, before anything else is sent over a new connection. */
  #resume: () => void = () => {};
  readonly #serverSide: (() => void)[] = [];

  constructor(process: SimProcess, timeline: Timeline, random: SeededRandom, rules: NetworkRules) {
    this.process = process;
    this.#timeline = timeline;
    this.#random = random;
    this.#rules = rules;
    process.onDeath(() => this.#lose());
  }

  /** As the client knows it. */
  get connected(): boolean {
    return this.#connected;
  }

  onResume(run: () => void): void {
    this.#resume = run;
  }

  /** `run` at the server, once it gets there; kept for later while not connected. */
  send(run: (reply: Reply) => void): void {
    if (!this.process.alive) return;
    if (!this.#connected) {
      this.#waiting.push(run);
      return;
    }
    const number = this.#number;
    this.#toServerAt = this.#arrival(this.#toServerAt);
    this.#timeline.plan(this.#toServerAt, () => {
      if (number === this.#number) run((back) => this.#answer(number, back));
    });
  }

  /** `run` in the process, once it gets there. */
  #answer(number: number, run: () => void): void {
    if (number !== this.#number) return;
    this.#toClientAt = this.#arrival(this.#toClientAt);
    this.#timeline.plan(this.#toClientAt, () => {
      // What has arrived at a frozen process has arrived: it is in its kernel's buffer.
      if (number === this.#number) this.process.receive(run);
    });
  }

  observe(observer: (change: "disconnected" | "reconnected") => void): () => void {
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  /** Called at the server when this connection ends, however it does. */
  onServerSideEnd(run: () => void): void {
    this.#serverSide.push(run);
  }

  stall(ms: number): void {
    this.#stalledUntil = Math.max(this.#stalledUntil, this.#timeline.now + ms);
  }

  /** The connection breaks; the client has another one after `ms`. */
  break(ms: number): void {
    if (!this.#connected || !this.process.alive) return;
    this.#lose();
    this.#connected = false;
    this.process.receive(() => this.#tell("disconnected"));
    this.#timeline.after(ms, () => this.#reconnect());
  }

  #reconnect(): void {
    if (!this.process.alive) return;
    this.#number++;
    // A frozen client connects when it is thawed.
    this.process.receive(() => {
      this.#connected = true;
      this.#resume();
      for (const run of this.#waiting.splice(0)) this.send(run);
      this.#tell("reconnected");
    });
  }

  #lose(): void {
    this.#number++;
    this.#stalledUntil = 0;
    for (const run of this.#serverSide) run();
  }

  #tell(change: "disconnected" | "reconnected"): void {
    for (const observer of [...this.#observers]) observer(change);
  }

  #arrival(last: number): number {
    const { fastest, slowest, pauseChance, longestPause } = this.#rules;
    let latency = this.#random.between(fastest, slowest);
    if (pauseChance > 0 && this.#random.chance(pauseChance)) latency += this.#random.between(0, longestPause);
    return Math.max(last, this.#timeline.now + latency, this.#stalledUntil);
  }
}
