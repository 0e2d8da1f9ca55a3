import type {
  LaneConsumerPort,
  LaneConsumerSpec,
  LaneConsumerState,
  ListedConsumer,
} from "./lane-consumer-port.js";
import type { StreamPort, StreamSnapshot } from "./stream-port.js";

/** A stream's consumers in memory: creating is strict, and what is asked for is written down. */
export class MemoryConsumers implements LaneConsumerPort {
  readonly kept = new Map<string, LaneConsumerState>();
  readonly did: string[] = [];
  readonly #assignments = new Map<string, string>();
  /** Called before each request; may throw, or change what is kept. */
  before: (request: string) => void = () => {};

  async read(name: string): Promise<LaneConsumerState | undefined> {
    this.before(`read ${name}`);
    return this.kept.get(name);
  }

  async create(spec: LaneConsumerSpec): Promise<boolean> {
    this.#note(`create ${spec.name} from ${spec.startSeq}`);
    if (this.kept.has(spec.name)) return false;
    this.#assignments.set(spec.name, spec.assignment);
    this.put(spec.name, { ...spec });
    return true;
  }

  async update(name: string, settings: { ackWaitMs: number; maxAckPending: number }): Promise<void> {
    this.#note(`ackWait ${name} ${settings.ackWaitMs}`);
    this.put(name, settings);
  }

  async delete(name: string): Promise<void> {
    this.#note(`delete ${name}`);
    this.kept.delete(name);
  }

  async list(): Promise<ListedConsumer[]> {
    return [...this.kept.values()].map(({ name, group, lane, incarnation, waiting }) => {
      return {
        name,
        group: group ?? "",
        lane,
        assignment: this.#assignments.get(name),
        incarnation,
        waiting,
      };
    });
  }

  put(name: string, change: Partial<LaneConsumerState>): void {
    const fresh: LaneConsumerState = {
      name,
      group: undefined,
      generation: 1,
      lane: 0,
      incarnation: undefined,
      created: Date.UTC(2026, 0, 1),
      groupStartSeq: 1,
      startSeq: 1,
      ackWaitMs: 30_000,
      maxAckPending: 1,
      ackFloor: 0,
      deliveries: 0,
      deliveredSeq: 0,
      deliversAgain: false,
      pending: 0,
      inFlight: 0,
      redelivered: 0,
      waiting: 0,
      differences: [],
    };
    this.kept.set(name, { ...fresh, ...this.kept.get(name), ...change });
  }

  #note(request: string): void {
    this.before(request);
    this.did.push(request);
  }
}

/** Ids for groups: different ones, in the same order in every run. */
export function countedIds(): () => string {
  let last = 0;
  return () => `id-${++last}`;
}

export function streamSnapshot(change: Partial<StreamSnapshot> = {}): StreamSnapshot {
  return {
    name: "ORDERS",
    created: "2026-01-01T00:00:00Z",
    replicas: 1,
    retention: "limits",
    subjects: [],
    transform: undefined,
    metadata: {},
    duplicateWindowMs: 120_000,
    trims: false,
    messages: 50,
    deleted: 0,
    firstSeq: 1,
    lastSeq: 50,
    ...change,
  };
}

/** A stream that holds what `held` says, and was at sequence 20 at any time that is asked for. */
export function memoryStream(held: (seq: number) => boolean = () => true): StreamPort {
  return {
    read: async () => streamSnapshot(),
    holds: async (seq) => held(seq),
    nextMatching: async () => undefined,
    lastMatching: async () => undefined,
    sequenceAt: async () => 20,
  };
}
