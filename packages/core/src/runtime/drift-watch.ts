import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { GroupConsumers } from "./group-consumers.js";

/** Lanes read at one look: half of them, so that all are seen within two looks, but never more than this. */
const mostAtOnce = 64;

/**
 * Notices that somebody changed a lane's consumer while workers run (O1, O2, R42): with another MaxAckPending, for
 * example, the server gives events of one key to several workers at once.
 */
export class DriftWatch {
  readonly #consumers: GroupConsumers;
  readonly #group: string;
  readonly #lanes: number;
  readonly #fail: (error: LanekeeperError) => void;
  #next = 0;
  #looking = false;

  constructor(
    consumers: GroupConsumers,
    group: string,
    lanes: number,
    fail: (error: LanekeeperError) => void,
  ) {
    this.#consumers = consumers;
    this.#group = group;
    this.#lanes = lanes;
    this.#fail = fail;
  }

  /** Looks at the next few lanes; calls `fail` with CONSUMER_DIFFERS. Never rejects. */
  async look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const count = Math.min(Math.ceil(this.#lanes / 2), mostAtOnce);
    const lanes = Array.from({ length: count }, (_, index) => (this.#next + index) % this.#lanes);
    this.#next = (this.#next + count) % this.#lanes;
    try {
      await this.#consumers.refuseChanged(this.#group, lanes);
    } catch (error) {
      // Anything else is not known this time; the lane's own pulls say when its consumer is gone.
      if (LanekeeperError.is(error) && error.code === "CONSUMER_DIFFERS") this.#fail(error);
    } finally {
      this.#looking = false;
    }
  }
}
