import { parseClaim } from "../../packages/core/src/domain/claim-record.js";
import type { BucketEntry } from "../../packages/core/src/runtime/bucket-port.js";
import type { Delivery } from "../../packages/core/src/runtime/lane-feed-port.js";
import type { SimConsumer } from "./sim-consumer.js";
import type { SimServer } from "./sim-server.js";

/** A broken invariant that only somebody who sees every process and the server at once can see. */
export interface SimFault {
  readonly invariant: "O4" | "O5" | "O6";
  readonly atMs: number;
  readonly text: string;
}

interface LaneTruth {
  /** The newest claim as the bucket's leader has it. */
  owner: string | undefined;
  nonce: string;
  consumer: string | undefined;
  /** Up to here every event was acked at the then current consumer. */
  floor: number;
  /** By nonce of a claim: the floor at the claim. */
  readonly floorAt: Map<string, number>;
  /** What an unbroken run of deliveries brought to its owner, by process and event. */
  readonly brought: Set<string>;
  /** The newest fence token that a handler was started with, and by whom. */
  token: number;
  tokenOf: string;
}

/** An unbroken run of deliveries of one consumer to one process. */
interface Run {
  last: number;
}

export interface JudgeOptions {
  readonly group: string;
  readonly lanes: number;
  readonly leaseMs: number;
  readonly owned: boolean;
}

/**
 * Sees what no process can see: who really has each lane by the bucket's leader, when each beat was sent, what was really
 * delivered and acked. Judges every start of a handler and every answer at the moment it happens (O4, O5, O6).
 */
export class LaneJudge {
  readonly faults: SimFault[] = [];
  readonly #server: SimServer;
  readonly #options: JudgeOptions;
  readonly #lanes: LaneTruth[];
  /** By process: the send time of its newest written beat. */
  readonly #beats = new Map<string, number>();
  readonly #runs = new Map<string, Run>();
  /** By consumer: deliveries at the newest hand-over in good order. */
  readonly #baselines = new Map<string, number>();

  constructor(server: SimServer, options: JudgeOptions) {
    this.#server = server;
    this.#options = options;
    this.#lanes = Array.from({ length: options.lanes }, () => ({
      owner: undefined,
      nonce: "",
      consumer: undefined,
      floor: 0,
      floorAt: new Map(),
      brought: new Set(),
      token: 0,
      tokenOf: "",
    }));
    server.bucket.observe((entry) => this.#written(entry));
    server.observer = {
      acked: (consumer, process, seq, body) => this.#acked(consumer, process, seq, body),
      fellBack: (lane) => this.#fellBack(lane),
    };
  }

  /** A member's beat was written; `sentAt` is when it was sent. */
  beat(process: string, sentAt: number): void {
    this.#beats.set(process, Math.max(this.#beats.get(process) ?? 0, sentAt));
  }

  delivered(process: string, { consumer, deliverySeq, seq }: Delivery): void {
    const name = `${process} ${consumer}`;
    const known = this.#runs.get(name);
    const run = known ?? { last: this.#baselines.get(consumer) ?? 0 };
    this.#runs.set(name, run);
    if (deliverySeq !== run.last + 1) return;
    run.last = deliverySeq;
    const lane = this.#server.stream.events[seq - 1]?.lane ?? 0;
    this.#lanes[lane]?.brought.add(`${process} ${seq}`);
  }

  /** A handler starts. */
  started(process: string, lane: number, seq: number, token: number, done: boolean): void {
    if (!this.#options.owned) return;
    const truth = this.#lanes[lane];
    if (truth === undefined) return;
    this.#judgeClaim(process, lane, `started event ${seq}`);
    if (token < truth.token || (token === truth.token && truth.tokenOf !== process && truth.tokenOf !== "")) {
      this.#fault(
        "O6",
        `${process} started event ${seq} of lane ${lane} with fence ${token}, after ${truth.tokenOf} with ${truth.token}`,
      );
    }
    truth.token = Math.max(truth.token, token);
    truth.tokenOf = process;
    if (!truth.brought.has(`${process} ${seq}`)) {
      this.#fault(
        "O5",
        `${process} started event ${seq} of lane ${lane} beyond an unbroken run of deliveries`,
      );
    }
    const floor = truth.floorAt.get(truth.nonce) ?? 0;
    if (done && seq <= floor) {
      this.#fault(
        "O4",
        `${process} ran event ${seq} of lane ${lane} again, though everything to ${floor} was acked when it claimed the lane`,
      );
    }
  }

  /** A process sends an answer to a delivery. */
  sent(process: string, subject: string, body: string): void {
    if (!this.#options.owned) return;
    const lane = Number(subject.split(".").at(-1));
    this.#judgeClaim(process, lane, `sent ${body.slice(0, 4)} for ${subject}`);
  }

  #judgeClaim(process: string, lane: number, what: string): void {
    const { now } = this.#server.timeline;
    const truth = this.#lanes[lane];
    const owner = truth?.owner;
    if (owner === undefined || processOf(owner) !== process) {
      this.#fault(
        "O6",
        `${process} ${what} while lane ${lane} was ${owner === undefined ? "nobody's" : `${processOf(owner)}'s`}`,
      );
    }
    const since = now - (this.#beats.get(process) ?? Number.NEGATIVE_INFINITY);
    if (since >= this.#options.leaseMs) {
      this.#fault(
        "O6",
        `${process} ${what} ${since.toFixed(0)} ms after it sent its newest beat, lease ${this.#options.leaseMs}`,
      );
    }
  }

  #written({ key, value }: BucketEntry): void {
    const [group, kind, , index] = key.split(".");
    if (group !== this.#options.group || kind !== "lane" || value === undefined) return;
    const truth = this.#lanes[Number(index)];
    const claim = parseClaim(value);
    if (truth === undefined || claim === undefined || claim === "newer") return;
    if (claim.owner !== undefined && claim.nonce !== truth.nonce) truth.floorAt.set(claim.nonce, truth.floor);
    if (claim.owner !== undefined && claim.owner !== truth.owner) truth.brought.clear();
    truth.owner = claim.owner;
    truth.nonce = claim.nonce;
    // The claiming write still names the last owner's consumer: late acks to it are what the replacement is for.
    truth.consumer = claim.epoch === 0 ? undefined : claim.consumer;
    if (claim.owner !== undefined || claim.consumer === undefined || claim.cleanAt === undefined) return;
    this.#baselines.set(claim.consumer, claim.cleanAt);
    for (const name of [...this.#runs.keys()])
      if (name.endsWith(` ${claim.consumer}`)) this.#runs.delete(name);
  }

  #acked(consumer: SimConsumer, process: string, seq: number, body: string): void {
    const truth = this.#lanes[consumer.spec.lane];
    if (truth === undefined) return;
    if (this.#options.owned && truth.consumer === consumer.name) {
      const owner = truth.owner;
      if (owner !== undefined && processOf(owner) !== process) {
        this.#fault(
          "O6",
          `${body.slice(0, 5)} of ${process} for event ${seq} reached ${consumer.name}, which ${processOf(owner)} owns`,
        );
      }
    }
    if (!this.#options.owned || truth.consumer === consumer.name)
      truth.floor = Math.max(truth.floor, consumer.floor);
  }

  #fellBack(lane: number): void {
    const truth = this.#lanes[lane];
    if (truth === undefined) return;
    truth.floor = 0;
    truth.floorAt.clear();
  }

  #fault(invariant: SimFault["invariant"], text: string): void {
    if (this.faults.length < 50) this.faults.push({ invariant, atMs: this.#server.timeline.now, text });
  }
}

/** Ids are made so that they tell their process, after eight random digits. */
function processOf(id: string): string {
  return id.slice(8).replace(/x\d+$/, "");
}
