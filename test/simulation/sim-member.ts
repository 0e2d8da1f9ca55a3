import type { LaneWorker } from "../../packages/core/src/runtime/lane-worker.js";
import type { SimLink } from "./sim-link.js";
import type { SimProcess } from "./sim-process.js";

/** One process of the simulated deployment and what runs in it. */
export interface SimMember {
  readonly process: SimProcess;
  readonly link: SimLink;
  worker: LaneWorker | undefined;
  leaving: boolean;
}
