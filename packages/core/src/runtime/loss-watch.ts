import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { eachAtOnce } from "./each-at-once.js";
import type { LaneConsumerState } from "./lane-consumer-port.js";
import type { Notify } from "./notifier.js";
import type { StreamPort, StreamSnapshot } from "./stream-port.js";

/** Requests at once. */
const atOnce = 8;

/** The lanes whose backlog is watched. */
export interface WatchedLanes {
  /** By lane; undefined where there is no consumer, or it is another worker's to watch. */
  read(): Promise<readonly (LaneConsumerState | undefined)[]>;
  filter(lane: number): string;
}

/**
 * Notices that a stream with an age or size limit deletes events which the group has not settled (O4). For every lane
 * with a backlog it remembers the oldest and the newest event that wait; when the stream starts after one of them and the
 * lane has not settled it, that event is lost, and others may be.
 */
export class LossWatch {
  readonly #stream: StreamPort;
  readonly #lanes: WatchedLanes;
  readonly #notify: Notify;
  /** By lane: sequences of events that waited at the last look, the oldest first. */
  readonly #waiting = new Map<number, readonly number[]>();
  #looking = false;

  constructor(stream: StreamPort, lanes: WatchedLanes, notify: Notify) {
    this.#stream = stream;
    this.#lanes = lanes;
    this.#notify = notify;
  }

  /** Never rejects; does nothing for streams that cannot lose events this way. */
  async look(snapshot: StreamSnapshot): Promise<void> {
    if (!snapshot.trims || this.#looking) return;
    this.#looking = true;
    try {
      const lanes = await this.#lanes.read();
      this.#tellLost(lanes, snapshot.firstSeq);
      await eachAtOnce([...lanes.entries()], atOnce, ([lane, state]) => this.#remember(lane, state));
    } catch {
      // Not known this time; the next look may tell.
    } finally {
      this.#looking = false;
    }
  }

  #tellLost(lanes: readonly (LaneConsumerState | undefined)[], firstSeq: number): void {
    for (const [lane, waiting] of this.#waiting) {
      const state = lanes[lane];
      // What is deleted is not delivered in one step with it: the oldest may still have been, and only the newest tells.
      const seq = waiting.find((one) => state !== undefined && one < firstSeq && !settled(state, one));
      if (seq === undefined) continue;
      this.#waiting.delete(lane);
      const text = `the stream deleted event ${seq}, and maybe others before ${firstSeq}, before the group had settled it`;
      this.#notify({ type: "lost", lane, seq, error: new LanekeeperError("EVENT_LOST", text) });
    }
  }

  async #remember(lane: number, state: LaneConsumerState | undefined): Promise<void> {
    this.#waiting.delete(lane);
    if (state === undefined || state.pending === 0) return;
    const from = Math.max(state.deliveredSeq, state.ackFloor) + 1;
    const filter = this.#lanes.filter(lane);
    const [oldest, newest] = await Promise.all([
      this.#stream.nextMatching(filter, from),
      state.pending > 1 ? this.#stream.lastMatching(filter) : undefined,
    ]);
    if (oldest !== undefined) this.#waiting.set(lane, [oldest.seq, newest?.seq ?? oldest.seq]);
  }
}

function settled(state: LaneConsumerState, seq: number): boolean {
  return state.ackFloor >= seq || state.deliveredSeq >= seq;
}
