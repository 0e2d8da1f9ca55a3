import type { GroupStart } from "../domain/worker-options.js";
import type { GroupConsumers } from "./group-consumers.js";
import type { LaneConsumerState } from "./lane-consumer-port.js";
import type { LaneView } from "./lane-view.js";
import type { StreamSnapshot } from "./stream-port.js";

/** A group's lanes, however they are assigned. */
export interface GroupLanes {
  /** The group is on record, whether or not it has consumers yet. */
  readonly recorded: boolean;
  read(): Promise<readonly LaneView[]>;
  readLane(lane: number): Promise<LaneView>;
  /** Names of workers that are known to live, though they did not answer when asked. */
  live(): Promise<readonly string[]>;
  delete(): Promise<void>;
  rewind(to: GroupStart, snapshot: StreamSnapshot): Promise<void>;
}

/** The ackWait of a rewound group until its next worker sets its own. */
const defaultAckWaitMs = 30_000;

/** Lanes of shared workers: one durable each, and what the consumers say is all there is. */
export class SharedGroupLanes implements GroupLanes {
  readonly recorded = false;
  readonly #group: string;
  readonly #consumers: GroupConsumers;

  constructor(group: string, consumers: GroupConsumers) {
    this.#group = group;
    this.#consumers = consumers;
  }

  async read(): Promise<readonly LaneView[]> {
    return (await this.#consumers.read(this.#group)).map((state, lane) => view(lane, state));
  }

  async readLane(lane: number): Promise<LaneView> {
    return view(lane, await this.#consumers.readLane(this.#group, lane));
  }

  async live(): Promise<readonly string[]> {
    const pulled = (await this.read()).some(({ state }) => (state?.waiting ?? 0) > 0);
    return pulled ? ["at least one is pulling"] : [];
  }

  delete(): Promise<void> {
    return this.#consumers.delete(this.#group);
  }

  async rewind(to: GroupStart, snapshot: StreamSnapshot): Promise<void> {
    const found = await this.#consumers.read(this.#group);
    const ackWaitMs = found.find((state) => state !== undefined)?.ackWaitMs ?? defaultAckWaitMs;
    await this.#consumers.rewind(this.#group, to, snapshot, ackWaitMs);
  }
}

function view(lane: number, state: LaneConsumerState | undefined): LaneView {
  return { lane, state, startSeq: state?.groupStartSeq ?? 1 };
}
