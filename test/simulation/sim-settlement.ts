import type { LaneJudge } from "./lane-judge.js";
import type { Scenario } from "./scenario.js";
import type { SimHandlers } from "./sim-handlers.js";
import type { SimMember } from "./sim-member.js";
import type { SimServer } from "./sim-server.js";
import type { Timeline } from "./timeline.js";

export interface SimSettlementParts {
  readonly group: string;
  readonly scenario: Scenario;
  readonly timeline: Timeline;
  readonly server: SimServer;
  readonly judge: LaneJudge;
  readonly handlers: SimHandlers;
  readonly live: () => readonly SimMember[];
}

/** When a simulated deployment is done, and what is missing when it never is (O4). */
export class SimSettlement {
  readonly #group: string;
  readonly #scenario: Scenario;
  readonly #timeline: Timeline;
  readonly #server: SimServer;
  readonly #judge: LaneJudge;
  readonly #handlers: SimHandlers;
  readonly #live: () => readonly SimMember[];

  constructor({ group, scenario, timeline, server, judge, handlers, live }: SimSettlementParts) {
    this.#group = group;
    this.#scenario = scenario;
    this.#timeline = timeline;
    this.#server = server;
    this.#judge = judge;
    this.#handlers = handlers;
    this.#live = live;
  }

  /** Everything is handled, and every lane has its owner. */
  reached(published: number): boolean {
    const scenario = this.#scenario;
    if (this.#timeline.now < scenario.faultsMs || published < scenario.events) return false;
    if (this.#server.stream.events.some(({ seq }) => !this.#handlers.settled.has(seq) && this.#counts(seq)))
      return false;
    return this.#unbalanced() === undefined;
  }

  /** Reports events that were never settled and lanes without an owner. */
  judgeMissing(): void {
    const server = this.#server;
    const missing = server.stream.events.filter(
      ({ seq }) => !this.#handlers.settled.has(seq) && this.#counts(seq),
    );
    const lanes = this.#unbalanced();
    const atMs = this.#timeline.now;
    if (missing.length > 0)
      this.#judge.faults.push({
        invariant: "O4",
        atMs,
        text: `never settled: ${missing.map(({ seq, lane }) => `${seq} (lane ${lane})`).join(", ")}`,
      });
    if (lanes !== undefined)
      this.#judge.faults.push({
        invariant: "O4",
        atMs,
        text: `lanes are not owned or not balanced: ${lanes}`,
      });
  }

  /** Its key waits behind the poisonous event, and with it, once MaxAckPending is used up, the lane. */
  waitsForever(seq: number): boolean {
    const { events } = this.#server.stream;
    const poison = events[(this.#scenario.poison ?? 0) - 1];
    return poison !== undefined && seq >= poison.seq && events[seq - 1]?.lane === poison.lane;
  }

  get startSeq(): number {
    const entry = this.#server.bucket.read(`${this.#group}.group`);
    if (entry?.value !== undefined) return (JSON.parse(entry.value) as { startSeq: number }).startSeq;
    for (const { spec } of this.#server.consumers) return spec.groupStartSeq;
    return 1;
  }

  /** Whether the group is to handle this event: not from before its start, and not what waits behind a poisonous one. */
  #counts(seq: number): boolean {
    return seq >= this.startSeq && !this.waitsForever(seq);
  }

  #unbalanced(): string | undefined {
    if (this.#scenario.assignment === "shared") return undefined;
    const workers = this.#live().filter(({ leaving }) => !leaving);
    const lists = workers.map(({ worker, process }) => ({
      name: process.name,
      lanes: worker?.lanes() ?? [],
    }));
    const sizes = lists.map(({ lanes }) => lanes.length);
    const owned = lists.flatMap(({ lanes }) => lanes).sort((a, b) => a - b);
    const all = owned.length === this.#scenario.lanes && new Set(owned).size === owned.length;
    if (all && Math.max(...sizes) - Math.min(...sizes) <= 1) return undefined;
    return lists.map(({ name, lanes }) => `${name}: ${lanes.join(" ")}`).join("; ");
  }
}
