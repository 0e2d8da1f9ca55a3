import { LanekeeperError } from "../../packages/core/src/domain/lanekeeper-error.js";
import type {
  ExpectedConsumer,
  LaneConsumerSpec,
  LaneConsumerState,
  ListedConsumer,
} from "../../packages/core/src/runtime/lane-consumer-port.js";
import type { SeededRandom } from "../harness/seeded-random.js";
import { SimBucket } from "./sim-bucket.js";
import type { AnswerMessage } from "./sim-connection.js";
import { type ConsumerHost, type ConsumerRules, SimConsumer } from "./sim-consumer.js";
import type { SimLink } from "./sim-link.js";
import { type SimEvent, SimStream, type SimStreamOptions } from "./sim-stream.js";
import type { Timeline } from "./timeline.js";

export interface ServerRules extends ConsumerRules {
  readonly lostAck: number;
  /** Compare-and-set writes that are carried out while their answer is lost. */
  readonly lostAnswer: number;
  readonly bucketReplicas: number;
}

/** What the server does that a judge wants to know. */
export interface ServerObserver {
  /** An answer to a delivery took effect. */
  acked(consumer: SimConsumer, process: string, seq: number, body: string): void;
  /** A consumer's floor may have gone back. */
  fellBack(lane: number): void;
}

/** A message of a client, at the server. */
export interface Received {
  readonly subject: string;
  readonly body: string;
  readonly process: string;
  readonly answer: (message: AnswerMessage) => void;
  /** Whether the server still knows the subscription that answers go to. */
  readonly heard: () => boolean;
  readonly stands: () => boolean;
}

const nanosPerMs = 1_000_000;

/** The simulated nats-server: one stream, its consumers, one bucket. */
export class SimServer implements ConsumerHost {
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  readonly rules: ServerRules;
  readonly stream: SimStream;
  readonly bucket = new SimBucket();
  /** Tells consumers apart: their names, unless a planted fault makes them alike. */
  identify: (name: string) => string = (name) => name;
  observer: ServerObserver = { acked() {}, fellBack() {} };
  readonly #consumers = new Map<string, SimConsumer>();
  #downUntil = 0;
  #bucketElection = 0;

  constructor(timeline: Timeline, random: SeededRandom, stream: SimStreamOptions, rules: ServerRules) {
    this.timeline = timeline;
    this.random = random;
    this.rules = rules;
    this.stream = new SimStream(stream);
  }

  get consumers(): Iterable<SimConsumer> {
    return this.#consumers.values();
  }

  get down(): boolean {
    return this.timeline.now < this.#downUntil;
  }

  get bucketElecting(): boolean {
    return this.timeline.now < this.#bucketElection;
  }

  get bucketElectedAt(): number {
    return this.#bucketElection;
  }

  consumer(name: string): SimConsumer | undefined {
    return this.#consumers.get(this.identify(name));
  }

  publish(key: string): void {
    const { retention } = this.stream.options;
    const event = this.stream.store(key, this.timeline.now);
    if (retention === "interest" && !this.#wanted(event)) event.removed = true;
    for (const consumer of this.#consumers.values()) if (consumer.spec.lane === event.lane) consumer.pump();
  }

  settled(event: SimEvent): void {
    const { retention } = this.stream.options;
    if (retention === "workqueue") event.removed = true;
    else if (retention === "interest" && !this.#wanted(event)) event.removed = true;
  }

  create(spec: LaneConsumerSpec): boolean {
    const known = this.consumer(spec.name);
    if (known !== undefined) {
      if (known.name === spec.name) return JSON.stringify(known.spec) === JSON.stringify(spec);
      // Alike for the server though not by name: the older one is replaced under it.
      known.delete();
    } else if (this.stream.options.retention === "workqueue") {
      for (const other of this.#consumers.values()) {
        if (other.spec.lane !== spec.lane) continue;
        throw new LanekeeperError("CONSUMER_OVERLAPS", `${other.name} already takes ${spec.filter}`);
      }
    }
    this.#consumers.set(this.identify(spec.name), new SimConsumer(spec, this));
    return true;
  }

  read(name: string, filter: string, expected: ExpectedConsumer): LaneConsumerState | undefined {
    const consumer = this.consumer(name);
    if (consumer === undefined) return undefined;
    const { spec } = consumer;
    const differences: string[] = [];
    if (spec.filter !== filter) differences.push("filter_subject");
    if (expected.maxAckPending !== undefined && expected.maxAckPending !== consumer.maxAckPending)
      differences.push("max_ack_pending");
    if (spec.assignment !== expected.assignment) differences.push("metadata lanekeeper.assignment");
    return { ...consumer.state(differences), name };
  }

  delete(name: string): void {
    const consumer = this.consumer(name);
    if (consumer === undefined || consumer.name !== name) return;
    this.#consumers.delete(this.identify(name));
    consumer.delete();
    if (this.stream.options.retention !== "interest") return;
    for (const event of this.stream.byLane[consumer.spec.lane] ?? []) {
      if (!event.removed && !this.#wanted(event)) event.removed = true;
    }
  }

  /** By somebody who does not know what it is for: what it knew is lost. */
  deleteByHand(name: string): void {
    const lane = this.consumer(name)?.spec.lane;
    this.delete(name);
    if (lane !== undefined) this.observer.fellBack(lane);
  }

  list(): ListedConsumer[] {
    return [...this.#consumers.values()].map((consumer) => {
      const { name, group, lane, assignment, incarnation } = consumer.spec;
      return { name, group, lane, assignment, incarnation, waiting: consumer.waiting };
    });
  }

  /** A message arrived. Unknown subjects meet no responders. */
  received(message: Received): void {
    if (this.down) return;
    const { subject, body, answer } = message;
    const [root, kind, , name] = subject.split(".");
    if (root === "$JS" && kind === "ACK" && name !== undefined) return this.#answered(message, name);
    const pulled = /^\$JS\.API\.CONSUMER\.MSG\.NEXT\.[^.]+\.(.+)$/.exec(subject)?.[1];
    const consumer = pulled === undefined ? undefined : this.consumer(pulled);
    if (consumer === undefined || pulled === undefined)
      return answer({ status: { code: 503, description: "No Responders" } });
    this.#pulled(message, consumer, pulled, JSON.parse(body));
  }

  /** Every consumer has another leader. */
  changeLeaders(electionMs: number, fallBackMs: number | undefined): void {
    for (const consumer of this.#consumers.values()) this.changeLeader(consumer, electionMs, fallBackMs);
  }

  changeLeader(consumer: SimConsumer, electionMs: number, fallBackMs: number | undefined): void {
    consumer.changeLeader(electionMs, this.random.chance(0.8), fallBackMs);
    if (fallBackMs !== undefined) this.observer.fellBack(consumer.spec.lane);
  }

  /** Killed and started again: every connection breaks, and consumers come back a little older. */
  restart(ms: number, links: Iterable<SimLink>): void {
    this.#downUntil = this.timeline.now + ms;
    for (const link of links) link.break(ms + this.random.between(10, 300));
    this.changeLeaders(ms, this.random.between(10, 100));
  }

  electBucket(ms: number): void {
    this.#bucketElection = Math.max(this.#bucketElection, this.timeline.now + ms);
  }

  #answered({ subject, body, process, answer }: Received, name: string): void {
    const consumer = this.consumer(name);
    if (consumer === undefined) return answer({ status: { code: 503, description: "No Responders" } });
    const seq = Number(subject.split(".")[5]);
    if (body.startsWith("+WPI")) {
      consumer.working(seq);
    } else if (body.startsWith("-NAK")) {
      const delay = body.includes("{") ? (JSON.parse(body.slice(4)) as { delay: number }).delay : 0;
      consumer.nak(seq, delay / nanosPerMs);
    } else {
      // Not for confirmed ones: those are requests, and lost together with their answer.
      if (this.random.chance(this.rules.lostAck)) return;
      if (consumer.ack(seq)) this.observer.acked(consumer, process, seq, body);
    }
    answer({});
  }

  #pulled(
    { answer, heard, stands }: Received,
    consumer: SimConsumer,
    name: string,
    request: { batch: number; expires: number; idle_heartbeat: number },
  ): void {
    const { timeline, stream } = this;
    const { lane } = consumer.spec;
    consumer.pull({
      stands,
      heard,
      remaining: request.batch,
      heartbeatMs: request.idle_heartbeat / nanosPerMs,
      expiresAt: timeline.now + request.expires / nanosPerMs,
      quietSince: timeline.now,
      status: (code, description) => answer({ status: { code, description } }),
      deliver: (event, { deliveries, deliverySeq }) => {
        const described = `${deliveries}.${event.seq}.${deliverySeq}.${event.stamp}`;
        answer({
          subject: event.subject,
          data: event.bytes,
          reply: `$JS.ACK.${stream.options.name}.${name}.${described}.${lane}`,
        });
      },
    });
  }

  #wanted(event: SimEvent): boolean {
    for (const consumer of this.#consumers.values()) {
      if (consumer.spec.lane === event.lane && consumer.needs(event.seq)) return true;
    }
    return false;
  }
}
