import type { LaneConsumerState } from "./lane-consumer-port.js";

/** One lane of a group, from outside. */
export interface LaneView {
  readonly lane: number;
  /** Its consumer; undefined while there is none. */
  readonly state: LaneConsumerState | undefined;
  /** The name of the worker that owns it. */
  readonly owner?: string;
  /** Where the group starts. */
  readonly startSeq: number;
}

/** Below this sequence everything of the lane is settled; without a consumer that is what the group skipped at its start. */
export function settledBelow({ state, startSeq }: LaneView): number {
  return state === undefined ? startSeq : Math.max(state.ackFloor + 1, state.startSeq);
}
