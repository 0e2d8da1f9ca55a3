import type {
  LaneConsumerSpec,
  LaneConsumerState,
} from "../../packages/core/src/runtime/lane-consumer-port.js";
import type { SeededRandom } from "../harness/seeded-random.js";
import type { SimEvent, SimStream } from "./sim-stream.js";
import type { Timeline } from "./timeline.js";

/** One pull request as the server holds it. */
export interface SimPull {
  /** The connection it came over still stands. */
  readonly stands: () => boolean;
  /** Its subscription is still known to the server. */
  readonly heard: () => boolean;
  readonly deliver: (event: SimEvent, described: { deliveries: number; deliverySeq: number }) => void;
  readonly status: (code: number, description: string) => void;
  readonly heartbeatMs: number;
  readonly expiresAt: number;
  remaining: number;
  quietSince: number;
}

export interface ConsumerRules {
  /** Deliveries that are counted and never arrive. */
  readonly lostDelivery: number;
  /** A pull whose subscription has ended takes an event with it. */
  readonly lostWithSubscription: number;
  /** Consumers keep earlier states to fall back to. */
  readonly fallsBack: boolean;
}

export interface ConsumerHost {
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  readonly stream: SimStream;
  readonly rules: ConsumerRules;
  /** The consumer needs this event no more. */
  settled(event: SimEvent): void;
}

interface Pending {
  readonly deliverySeq: number;
  deadline: number;
}

interface State {
  readonly at: number;
  readonly deliveries: number;
  readonly cursor: number;
  readonly pending: ReadonlyMap<number, Pending>;
  readonly counts: ReadonlyMap<number, number>;
  readonly floor: number;
  readonly floorDelivery: number;
  readonly acked: boolean;
}

const keptEveryMs = 20;
const keptStates = 6;

/** A pull consumer with explicit acks, as nats-server runs it. */
export class SimConsumer {
  readonly name: string;
  readonly spec: LaneConsumerSpec;
  ackWaitMs: number;
  maxAckPending: number;
  deleted = false;
  readonly #host: ConsumerHost;
  readonly #created: number;
  #deliveries = 0;
  /** The next stream sequence to look at. */
  #cursor: number;
  #pending = new Map<number, Pending>();
  #counts = new Map<number, number>();
  #floor: number;
  #floorDelivery = 0;
  #acked = false;
  readonly #again = new Set<number>();
  #pulls: SimPull[] = [];
  #kept: State[] = [];
  #electedAt = 0;

  constructor(spec: LaneConsumerSpec, host: ConsumerHost) {
    this.name = spec.name;
    this.spec = spec;
    this.ackWaitMs = spec.ackWaitMs;
    this.maxAckPending = spec.maxAckPending;
    this.#host = host;
    this.#created = host.timeline.now;
    this.#cursor = spec.startSeq;
    this.#floor = spec.startSeq - 1;
  }

  get floor(): number {
    return this.#floor;
  }

  /** Whether it still has to see this event settled. */
  needs(seq: number): boolean {
    if (seq < this.spec.startSeq) return false;
    return seq >= this.#cursor || this.#pending.has(seq);
  }

  state(differences: readonly string[]): LaneConsumerState {
    const { stream, timeline, random } = this.#host;
    const { spec } = this;
    const replicated = stream.options.replicas > 1;
    let pending = 0;
    for (const { seq, removed } of stream.byLane[spec.lane] ?? [])
      if (seq >= this.#cursor && !removed) pending++;
    // Counted in the store of the consumer's leader, which may lag.
    if (replicated && random.chance(0.2)) pending = 0;
    return {
      name: spec.name,
      group: spec.group,
      generation: spec.generation,
      lane: spec.lane,
      incarnation: spec.incarnation,
      created: this.#created,
      groupStartSeq: spec.groupStartSeq,
      startSeq: spec.startSeq,
      ackWaitMs: this.ackWaitMs,
      maxAckPending: this.maxAckPending,
      ackFloor: replicated && !this.#acked ? 0 : this.#floor,
      deliveries: this.#deliveries,
      deliveredSeq: replicated && this.#deliveries === 0 ? 0 : this.#cursor - 1,
      // The simulated server never loses its memory.
      deliversAgain: this.#deliveries > 0,
      pending,
      inFlight: this.#pending.size,
      redelivered: [...this.#counts.values()].filter((count) => count > 1).length,
      waiting: this.#pulls.filter((pull) => pull.stands() && pull.heard() && pull.expiresAt > timeline.now)
        .length,
      differences,
    };
  }

  /** Open pulls of connections that still stand. */
  get waiting(): number {
    return this.#pulls.filter((pull) => pull.stands() && pull.heard()).length;
  }

  pull(pull: SimPull): void {
    this.#pulls.push(pull);
    this.#watchPull(pull);
    this.pump();
  }

  /** Delivers what can be delivered: redeliveries first, then new events as long as there is room. */
  pump(): void {
    const { timeline } = this.#host;
    if (this.deleted || timeline.now < this.#electedAt) return;
    for (;;) {
      const event = this.#next();
      if (event === undefined) return;
      const pull = this.#takePull();
      if (pull === undefined) return;
      this.#deliver(event, pull);
    }
  }

  /** Acks match the stream sequence only, whoever sends them. */
  ack(seq: number): boolean {
    const pending = this.#pending.get(seq);
    if (pending === undefined) return false;
    this.#keep();
    this.#pending.delete(seq);
    this.#again.delete(seq);
    this.#counts.delete(seq);
    this.#acked = true;
    if (this.#pending.size === 0) {
      this.#floor = Math.max(this.#cursor - 1, this.#floor);
      this.#floorDelivery = this.#deliveries;
    } else if (pending.deliverySeq === this.#floorDelivery + 1) {
      this.#floor = seq;
      this.#floorDelivery = pending.deliverySeq;
      for (let next = seq + 1; next < this.#cursor; next++) {
        const waiting = this.#pending.get(next);
        if (waiting === undefined) continue;
        this.#floor = next - 1;
        this.#floorDelivery = waiting.deliverySeq - 1;
        break;
      }
    }
    const event = this.#host.stream.get(seq);
    if (event !== undefined) this.#host.settled(event);
    this.pump();
    return true;
  }

  working(seq: number): void {
    const pending = this.#pending.get(seq);
    if (pending === undefined || this.#again.has(seq)) return;
    this.#arm(seq, pending, this.ackWaitMs);
  }

  nak(seq: number, delayMs: number): void {
    const pending = this.#pending.get(seq);
    if (pending === undefined) return;
    if (delayMs > 0) {
      this.#arm(seq, pending, delayMs);
    } else {
      this.#again.add(seq);
      this.pump();
    }
  }

  update(settings: { ackWaitMs: number; maxAckPending: number }): void {
    this.ackWaitMs = settings.ackWaitMs;
    this.maxAckPending = settings.maxAckPending;
    this.pump();
  }

  delete(): void {
    this.deleted = true;
    for (const pull of this.#pulls) pull.status(409, "Consumer Deleted");
    this.#pulls = [];
  }

  /** Another leader: pulls and undelivered naks are forgotten, and with `fallBackMs` the newest changes too. */
  changeLeader(electionMs: number, told: boolean, fallBackMs: number | undefined): void {
    const { timeline, random } = this.#host;
    for (const pull of this.#pulls) if (told) pull.status(409, "Leadership Change");
    this.#pulls = [];
    this.#again.clear();
    if (fallBackMs !== undefined) this.#fallBack(fallBackMs);
    for (const [seq, pending] of this.#pending) {
      // Pending times are kept in whole seconds: up to a second early.
      const early = Math.min(random.between(0, 1_000), this.ackWaitMs * 0.25);
      this.#arm(seq, pending, Math.max(pending.deadline - timeline.now - early, 1));
    }
    this.#electedAt = timeline.now + electionMs;
    timeline.after(electionMs, () => this.pump());
  }

  #fallBack(ms: number): void {
    const { timeline } = this.#host;
    const to = this.#kept.filter(({ at }) => at >= timeline.now - ms)[0];
    if (to === undefined) return;
    this.#deliveries = to.deliveries;
    this.#cursor = to.cursor;
    this.#pending = new Map([...to.pending].map(([seq, pending]) => [seq, { ...pending }]));
    this.#counts = new Map(to.counts);
    this.#floor = to.floor;
    this.#floorDelivery = to.floorDelivery;
    this.#acked = to.acked;
    for (const seq of [...this.#pending.keys()]) {
      if (this.#host.stream.get(seq) === undefined) this.#pending.delete(seq);
    }
    this.#kept = [];
  }

  #next(): SimEvent | undefined {
    const { stream } = this.#host;
    for (const seq of [...this.#again].sort((a, b) => a - b)) {
      const event = stream.get(seq);
      if (event !== undefined) return event;
      this.#again.delete(seq);
      this.#pending.delete(seq);
    }
    if (this.#pending.size >= this.maxAckPending) return undefined;
    return stream.nextOf(this.spec.lane, this.#cursor);
  }

  #takePull(): SimPull | undefined {
    const { timeline, random, rules } = this.#host;
    for (let pull = this.#pulls[0]; pull !== undefined; pull = this.#pulls[0]) {
      const open = pull.stands() && pull.expiresAt > timeline.now;
      if (open && (pull.heard() || random.chance(rules.lostWithSubscription))) return pull;
      this.#pulls.shift();
    }
    return undefined;
  }

  #deliver(event: SimEvent, pull: SimPull): void {
    const { timeline, random, rules } = this.#host;
    this.#keep();
    const { seq } = event;
    const deliverySeq = ++this.#deliveries;
    const deliveries = (this.#counts.get(seq) ?? 0) + 1;
    this.#counts.set(seq, deliveries);
    this.#again.delete(seq);
    if (seq >= this.#cursor) this.#cursor = seq + 1;
    const pending = this.#pending.get(seq) ?? { deliverySeq, deadline: 0 };
    this.#pending.set(seq, pending);
    this.#arm(seq, pending, this.ackWaitMs);
    pull.quietSince = timeline.now;
    if (--pull.remaining === 0) this.#pulls = this.#pulls.filter((other) => other !== pull);
    if (!pull.heard() || random.chance(rules.lostDelivery)) return;
    pull.deliver(event, { deliveries, deliverySeq });
  }

  /** Delivered again unless it is heard of within `ms`. */
  #arm(seq: number, pending: Pending, ms: number): void {
    const { timeline } = this.#host;
    const deadline = timeline.now + ms;
    pending.deadline = deadline;
    timeline.plan(deadline, () => {
      if (this.deleted || this.#pending.get(seq) !== pending || pending.deadline !== deadline) return;
      this.#again.add(seq);
      this.pump();
    });
  }

  #watchPull(pull: SimPull): void {
    const { timeline } = this.#host;
    const next = Math.min(pull.quietSince + pull.heartbeatMs, pull.expiresAt);
    timeline.plan(next, () => {
      if (!this.#pulls.includes(pull)) return;
      if (!pull.stands() || !pull.heard()) {
        // Noticed by the next delivery, if it is not gone by then: that may take an event with it.
        if (!pull.stands()) this.#pulls = this.#pulls.filter((other) => other !== pull);
        else if (timeline.now < pull.expiresAt) {
          pull.quietSince = timeline.now;
          this.#watchPull(pull);
        } else this.#pulls = this.#pulls.filter((other) => other !== pull);
        return;
      }
      if (timeline.now >= pull.expiresAt) {
        this.#pulls = this.#pulls.filter((other) => other !== pull);
        return pull.status(408, "Request Timeout");
      }
      if (timeline.now - pull.quietSince >= pull.heartbeatMs - 1e-6) {
        pull.status(100, "Idle Heartbeat");
        pull.quietSince = timeline.now;
      }
      this.#watchPull(pull);
    });
  }

  #keep(): void {
    if (!this.#host.rules.fallsBack) return;
    const { now } = this.#host.timeline;
    if (now - (this.#kept.at(-1)?.at ?? Number.NEGATIVE_INFINITY) < keptEveryMs) return;
    this.#kept.push({
      at: now,
      deliveries: this.#deliveries,
      cursor: this.#cursor,
      pending: new Map([...this.#pending].map(([seq, pending]) => [seq, { ...pending }])),
      counts: new Map(this.#counts),
      floor: this.#floor,
      floorDelivery: this.#floorDelivery,
      acked: this.#acked,
    });
    if (this.#kept.length > keptStates) this.#kept.shift();
  }
}
