import { type LaneLayout, LaneRouter, laneSubject, layoutConfig } from "@lanekeeper/partitioner";
import type {
  StoredEvent as PortEvent,
  StreamSnapshot,
} from "../../packages/core/src/runtime/stream-port.js";
import type { StoredEvent } from "../harness/history-record.js";
import { wallStart } from "./sim-process.js";

/** One event of the simulated stream. */
export interface SimEvent {
  readonly seq: number;
  readonly key: string;
  readonly lane: number;
  readonly subject: string;
  readonly bytes: Uint8Array;
  /** Nanoseconds since the epoch, as text. */
  readonly stamp: string;
  removed: boolean;
}

export interface SimStreamOptions {
  readonly name: string;
  readonly layout: LaneLayout;
  readonly retention: StreamSnapshot["retention"];
  readonly replicas: number;
}

const encoder = new TextEncoder();

/** What the stream holds: events by lane, in order. */
export class SimStream {
  readonly options: SimStreamOptions;
  readonly created = "2026-01-01T00:00:00.000000001Z";
  readonly events: SimEvent[] = [];
  readonly byLane: readonly SimEvent[][];
  readonly #router: LaneRouter;
  readonly #config: ReturnType<typeof layoutConfig>;

  constructor(options: SimStreamOptions) {
    this.options = options;
    this.byLane = Array.from({ length: options.layout.lanes }, () => []);
    this.#router = new LaneRouter(options.layout);
    this.#config = layoutConfig(options.layout);
  }

  store(key: string, now: number): SimEvent {
    const subject = laneSubject(this.options.layout, { key, type: "happened" });
    const { lane } = this.#router.parse(subject);
    const seq = this.events.length + 1;
    const stamp = `${wallStart + Math.floor(now)}${String(seq % 1_000_000).padStart(6, "0")}`;
    const event = { seq, key, lane, subject, bytes: encoder.encode(`{"n":${seq}}`), stamp, removed: false };
    this.events.push(event);
    this.byLane[lane]?.push(event);
    return event;
  }

  get(seq: number): SimEvent | undefined {
    const event = this.events[seq - 1];
    return event === undefined || event.removed ? undefined : event;
  }

  /** The first event of a lane at or after `seq`. */
  nextOf(lane: number, seq: number): SimEvent | undefined {
    const events = this.byLane[lane] ?? [];
    let low = 0;
    let high = events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((events[middle] as SimEvent).seq < seq) low = middle + 1;
      else high = middle;
    }
    for (let index = low; index < events.length; index++) {
      const event = events[index] as SimEvent;
      if (!event.removed) return event;
    }
    return undefined;
  }

  snapshot(): StreamSnapshot {
    const { name, replicas, retention } = this.options;
    const held = this.events.filter(({ removed }) => !removed);
    const lastSeq = this.events.length;
    return {
      name,
      created: this.created,
      replicas,
      retention,
      subjects: this.#config.subjects,
      transform: undefined,
      metadata: this.#config.metadata,
      duplicateWindowMs: 120_000,
      trims: false,
      messages: held.length,
      deleted: 0,
      firstSeq: held[0]?.seq ?? lastSeq + 1,
      lastSeq,
    };
  }

  /** As the history's checkers want it: everything that was ever stored. */
  stored(): StoredEvent[] {
    return this.events.map(({ seq, key, lane }) => ({ seq, key, lane, type: "happened" }));
  }

  describe(event: SimEvent): PortEvent {
    const storedAt = new Date(Number(event.stamp.slice(0, -6)));
    return { seq: event.seq, subject: event.subject, id: undefined, storedAt };
  }
}
