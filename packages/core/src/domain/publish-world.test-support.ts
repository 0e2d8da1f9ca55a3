import fc from "fast-check";
import { LanekeeperError } from "./lanekeeper-error.js";
import type { BatchFailure } from "./publish-batches.js";
import { PendingPublish } from "./publish-pending.js";
import { PublishQueue } from "./publish-queue.js";
import type { EventSight, StreamSight } from "./publish-sight.js";

const windowMs = 4_000;
const timeoutMs = 1_000;
const refusal = (type: "refused" | "not-taken" | "unclear") =>
  ({ type, error: new LanekeeperError("STREAM_FULL", type) }) as const;

/** How the server takes what it reads: "vague" stores it and answers with an error that leaves that open, "tight" refuses, but stores half of a batch. */
type Mood = "well" | "full" | "busy" | "unheard" | "vague" | "tight";

/** Faults to plant, in the publisher or in what it counts on. */
export interface Plant {
  readonly cutMeansRefused?: boolean;
  readonly believedWindowMs?: number;
  readonly newIdsAfterBatch?: boolean;
  readonly lateBatchesStored?: boolean;
  readonly firstSeqTold?: boolean;
  readonly partTakenForNone?: boolean;
}

const key = fc.constantFrom("a", "b");
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant("publish" as const), key, guarded: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant("read" as const), pick: fc.nat(9) }) },
  { weight: 5, arbitrary: fc.record({ type: fc.constant("answer" as const), pick: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("lose" as const), pick: fc.nat(9) }) },
  { weight: 5, arbitrary: fc.record({ type: fc.constant("wait" as const), ms: fc.nat(900) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("wait" as const), ms: fc.nat(6_000) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("cut" as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("connect" as const) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("look" as const), readable: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("mood" as const),
      mood: fc.constantFrom<Mood>("well", "full", "busy", "unheard", "vague", "tight"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("fault" as const), on: fc.boolean() }),
  },
);
/** Long ones: short histories of random steps hardly get anywhere. */
export const history = fc.array(step, { minLength: 30, maxLength: 150, size: "max" });
/** As above, with calls by the dozen, so that keys have runs long enough for batches. */
export const runs = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        type: fc.constant("run" as const),
        key,
        count: fc.integer({ min: 20, max: 90 }),
      }),
    },
    { weight: 30, arbitrary: step },
    { weight: 6, arbitrary: fc.record({ type: fc.constant("answer" as const), pick: fc.nat(9) }) },
    { weight: 6, arbitrary: fc.record({ type: fc.constant("read" as const), pick: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("crash" as const), stored: fc.nat(90) }) },
  ),
  { minLength: 20, maxLength: 90, size: "max" },
);
type Run = { readonly type: "run"; readonly key: string; readonly count: number };
type Crash = { readonly type: "crash"; readonly stored: number };
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Job extends PendingPublish {
  readonly number: number;
  /** The last sequence it expects of its key. */
  readonly expect: number | undefined;
  /** Message id. */
  id: string;

  constructor(one: string, number: number, expectLast: number | undefined, deadlineAt: number) {
    super(one, 10, expectLast === undefined, deadlineAt);
    this.number = number;
    this.expect = expectLast;
    this.id = String(number);
  }
}

interface Attempt {
  /** One, or those of a batch. */
  readonly jobs: readonly { readonly job: Job; readonly id: string }[];
  readonly batch: boolean;
  readonly token: number;
  readonly sentAt: number;
}

type Answer = { readonly token: number } & (
  | { readonly type: "stored"; readonly seq: number; readonly duplicate: boolean }
  | { readonly type: "refused" | "not-taken" | "unclear" | "wrong-last" | "unheard" }
  | { readonly type: "batch-stored"; readonly lastSeq: number; readonly count: number }
  | { readonly type: "batch-failed"; readonly failure: BatchFailure }
);

/** A stream with a duplicate window, behind connections that lose, hold and delay; and one publisher in front of it. */
export class World {
  now = 0;
  readonly log: { readonly key: string; readonly number: number }[] = [];
  readonly #queue: PublishQueue<Job>;
  readonly #plant: Plant;
  /** By message id. */
  readonly #storedAt = new Map<string, { at: number; seq: number }>();
  batchesStored = 0;
  /** How much of the next batch is stored before the server dies; undefined: all. */
  #crashAfter: number | undefined;
  /** Unread attempts by connection, each in order; the last one is the current. */
  readonly #wires: Attempt[][] = [[]];
  #answers: Answer[] = [];
  #connected = true;
  #mood: Mood = "well";
  #pings: number[] = [];
  #eventLooks: Job[] = [];
  #streamLook = false;
  #published = 0;
  readonly #outcome = new Map<number, LanekeeperError | number>();
  readonly #faults: string[] = [];

  constructor(plant: Plant = {}) {
    this.#plant = plant;
    const limits = {
      timeoutMs,
      maxPending: 1_000,
      maxPendingBytes: 1_000_000,
      duplicateWindowMs: plant.believedWindowMs ?? windowMs,
    };
    const effects = {
      send: (job: Job, token: number) => {
        if (!this.#connected) this.#faults.push(`${job.number} was sent without a connection`);
        if (this.#plant.newIdsAfterBatch && job.attempts > 1) job.id += "'";
        this.#wires.at(-1)?.push({ jobs: [{ job, id: job.id }], batch: false, token, sentAt: this.now });
      },
      sendBatch: (jobs: readonly Job[], token: number) => {
        if (!this.#connected) this.#faults.push("a batch was sent without a connection");
        const [first] = jobs;
        if (jobs.some((job) => job.key !== first?.key)) this.#faults.push("a batch has two keys");
        if (jobs.some((job) => job.expect !== undefined)) this.#faults.push("a guarded event is in a batch");
        const messages = jobs.map((job) => ({ job, id: job.id }));
        this.#wires.at(-1)?.push({ jobs: messages, batch: true, token, sentAt: this.now });
      },
      resolve: (job: Job, seq: number) => this.#settle(job, seq),
      reject: (job: Job, error: LanekeeperError) => this.#settle(job, error),
      lookForEvent: (publish: Job) => void this.#eventLooks.push(publish),
      lookAtStream: () => {
        this.#streamLook = true;
      },
      ping: () => void this.#pings.push(this.now),
    };
    this.#queue = new PublishQueue<Job>(limits, effects, true);
    this.#queue.allowBatches(3);
  }

  take(one: Step | Run | Crash): void {
    switch (one.type) {
      case "run":
        for (let n = 0; n < one.count; n++) this.#publish(one.key, false);
        return;
      case "crash":
        this.#crashAfter = one.stored;
        return;
      case "publish":
        return this.#publish(one.key, one.guarded);
      case "read":
        return this.#read(one.pick);
      case "answer":
        return this.#answer(one.pick);
      case "lose":
        this.#answers.splice(one.pick % Math.max(this.#answers.length, 1), 1);
        return;
      case "wait":
        this.now += one.ms;
        this.#dropStale();
        return this.#queue.tick(this.now);
      case "cut":
        return this.#cut();
      case "connect":
        return this.#connect();
      case "look":
        return this.#look(one.readable);
      case "mood":
        this.#mood = one.mood;
        return;
      case "fault":
        return this.#queue.setFault(
          one.on ? new LanekeeperError("LAYOUT_DIFFERS", "planted") : undefined,
          this.now,
        );
    }
  }

  /** Everything works again; then nothing may stay behind. */
  heal(): void {
    this.#mood = "well";
    this.#crashAfter = undefined;
    this.#queue.setFault(undefined, this.now);
    this.#connect();
    for (let round = 0; round < 4_000 && this.#queue.count > 0; round++) {
      for (const _ of [...this.#wires.flat()]) this.#read(0);
      while (this.#answers.length > 0) this.#answer(0);
      this.#look(true);
      this.now += 50;
      this.#dropStale();
      this.#queue.tick(this.now);
    }
    if (this.#queue.count > 0) this.#faults.push(`${this.#queue.count} events are stuck`);
    for (let number = 1; number <= this.#published; number++) {
      if (!this.#outcome.has(number)) this.#faults.push(`${number} was never settled`);
    }
  }

  faults(): string[] {
    const faults = [...this.#faults];
    for (const one of ["a", "b"]) {
      const numbers = this.log.filter((event) => event.key === one).map((event) => event.number);
      const sorted = [...new Set(numbers)].sort((x, y) => x - y);
      if (numbers.join() !== sorted.join()) faults.push(`P1: key ${one} is stored as ${numbers.join(", ")}`);
    }
    for (const [number, outcome] of this.#outcome) {
      const seq = this.log.findIndex((event) => event.number === number) + 1;
      if (typeof outcome === "number") {
        if (seq !== outcome) faults.push(`${number} resolved with ${outcome} and is stored at ${seq}`);
      } else if (seq > 0 && !/may be stored/.test(outcome.message)) {
        faults.push(`${number} was rejected for certain (${outcome.message}) and is stored at ${seq}`);
      }
    }
    return faults;
  }

  #publish(one: string, guarded: boolean): void {
    const number = ++this.#published;
    const last = this.log.findLastIndex((event) => event.key === one) + 1;
    const job = new Job(one, number, guarded ? last : undefined, this.now + timeoutMs);
    const fault = this.#queue.accept(job, this.now);
    if (fault !== undefined) this.#settle(job, fault);
  }

  #settle(job: Job, outcome: LanekeeperError | number): void {
    if (this.#outcome.has(job.number)) this.#faults.push(`${job.number} was settled twice`);
    this.#outcome.set(job.number, outcome);
  }

  /** The server reads the first attempt of some connection, also of one that is gone on the publisher's side. */
  #read(pick: number): void {
    const wires = this.#wires.filter((wire) => wire.length > 0);
    const wire = wires[pick % Math.max(wires.length, 1)];
    const attempt = wire?.shift();
    if (attempt === undefined) return;
    const answer = attempt.batch ? this.#storeBatch(attempt) : this.#storeOne(attempt);
    if (answer !== undefined && this.#connected && wire === this.#wires.at(-1)) this.#answers.push(answer);
  }

  #known(id: string): { seq: number } | undefined {
    const known = this.#storedAt.get(id);
    return known !== undefined && this.now < known.at + windowMs ? known : undefined;
  }

  #append(job: Job, id: string): number {
    this.log.push({ key: job.key, number: job.number });
    this.#storedAt.set(id, { at: this.now, seq: this.log.length });
    return this.log.length;
  }

  #storeOne({ jobs: [message], token }: Attempt): Answer | undefined {
    if (message === undefined) return undefined;
    const { job, id } = message;
    if (this.#mood === "unheard") return { type: "unheard", token };
    if (this.#mood === "busy") return { type: "not-taken", token };
    const known = this.#known(id);
    // As 2.15 does it: the expected sequence comes before the duplicate.
    if (job.expect !== undefined) {
      const last = this.log.findLastIndex((event) => event.key === job.key) + 1;
      if (last !== job.expect) return { type: "wrong-last", token };
    }
    if (known !== undefined) return { type: "stored", token, seq: known.seq, duplicate: true };
    if (this.#mood === "full" || this.#mood === "tight") return { type: "refused", token };
    const seq = this.#append(job, id);
    if (this.#mood === "vague") return { type: "unclear", token };
    return { type: "stored", token, seq, duplicate: false };
  }

  /** All of it or nothing; a server that dies meanwhile may leave a part, and says nothing. */
  #storeBatch({ jobs, token }: Attempt): Answer | undefined {
    if (this.#mood === "unheard") return { type: "unheard", token };
    if (this.#mood === "busy" || this.#mood === "full")
      return { type: "batch-failed", failure: "none", token };
    if (jobs.some(({ id }) => this.#known(id) !== undefined) && !this.#plant.lateBatchesStored) {
      return { type: "batch-failed", failure: "none", token };
    }
    if (this.#mood === "tight") {
      for (const { job, id } of jobs.slice(0, jobs.length / 2)) this.#append(job, id);
      return { type: "batch-failed", failure: this.#plant.partTakenForNone ? "none" : "part", token };
    }
    const crashAfter = this.#crashAfter;
    this.#crashAfter = undefined;
    for (const { job, id } of jobs.slice(0, crashAfter ?? jobs.length)) this.#append(job, id);
    if (crashAfter !== undefined) {
      this.#cut();
      return undefined;
    }
    this.batchesStored++;
    if (this.#mood === "vague") return { type: "batch-failed", failure: "unclear", token };
    return { type: "batch-stored", lastSeq: this.log.length, count: jobs.length, token };
  }

  #answer(pick: number): void {
    const [answer] = this.#answers.splice(pick % Math.max(this.#answers.length, 1), 1);
    if (answer === undefined) return;
    const { token } = answer;
    if (answer.type === "batch-failed") this.#queue.batchFailed(token, answer.failure, this.now);
    else if (answer.type === "batch-stored") {
      const seq = this.#plant.firstSeqTold ? answer.lastSeq - answer.count + 1 : answer.lastSeq;
      this.#queue.batchStored(token, seq, this.now);
    } else if (answer.type === "stored") this.#queue.stored(token, answer.seq, answer.duplicate, this.now);
    else if (answer.type === "unheard") this.#queue.noResponders(token, this.now);
    else if (answer.type === "wrong-last") {
      const error = new LanekeeperError("WRONG_LAST_SEQUENCE", "another last sequence");
      this.#queue.refused(token, { type: "refused", error }, this.now);
    } else this.#queue.refused(token, refusal(answer.type), this.now);
  }

  #cut(): void {
    if (!this.#connected) return;
    const lost = [...(this.#wires.at(-1) ?? [])].map(({ token }) => token);
    const unanswered = this.#answers.map(({ token }) => token);
    this.#connected = false;
    this.#answers = [];
    this.#pings = [];
    this.#queue.disconnected();
    this.#queue.roundTrip(undefined, this.now);
    if (this.#plant.cutMeansRefused) {
      for (const token of [...unanswered, ...lost]) {
        this.#queue.refused(token, refusal("refused"), this.now);
        this.#queue.batchFailed(token, "none", this.now);
      }
    }
  }

  #connect(): void {
    if (this.#connected) return;
    this.#connected = true;
    this.#wires.push([]);
    this.#queue.reconnected(this.now);
  }

  /** Everything asked of the server is answered, in the order of the connection. */
  #look(readable: boolean): void {
    if (!this.#connected) return;
    if (readable && this.#wires.at(-1)?.length === 0) {
      for (const askedAt of this.#pings.splice(0)) this.#queue.roundTrip(askedAt, this.now);
    }
    for (const publish of this.#eventLooks.splice(0)) {
      this.#queue.eventSeen(publish, readable ? this.#sight(publish) : unreadable, this.now);
    }
    if (!this.#streamLook) return;
    this.#streamLook = false;
    const error = new LanekeeperError("JETSTREAM_UNAVAILABLE", "planted");
    const sight: StreamSight<Job> = readable
      ? { type: "ok", unheard: () => new LanekeeperError("NO_STREAM_FOR_SUBJECT", "planted") }
      : { type: "unreadable", error };
    this.#queue.streamSeen(sight, this.now);
  }

  #sight(job: Job): EventSight {
    const events = this.log.map((event, index) => ({ ...event, seq: index + 1 }));
    const ofKey = events.filter((event) => event.key === job.key);
    const found =
      job.expect === undefined ? ofKey.at(-1) : ofKey.find((event) => event.seq > (job.expect ?? 0));
    if (found === undefined) return { type: "absent" };
    if (found.number === job.number) return { type: "stored", seq: found.seq };
    return { type: job.expect === undefined ? "absent" : "superseded" };
  }

  /** What is under way for half a window is lost: about slower networks nothing is promised. */
  #dropStale(): void {
    for (const wire of this.#wires) {
      while (wire[0] !== undefined && this.now >= wire[0].sentAt + windowMs / 2) wire.shift();
    }
  }
}

const unreadable: EventSight = { type: "unreadable", forbidden: false };
