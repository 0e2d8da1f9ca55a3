import type { Mode } from "./modes.js";

/** What a worker process is to do. Given as JSON, as its one argument. */
export interface WorkerTask {
  readonly mode: Mode;
  readonly url: string;
  readonly stream: string;
  /** The SQLite file that all workers of the mode write to. */
  readonly database: string;
  /** Which rows are kept: customers, or any key's. */
  readonly rows: "customers" | "keys";
  /** Handlers at once in this worker, where it decides that itself: in the mode lanekeeper. */
  readonly handlers: number;
  readonly wait: WaitRange;
  readonly seed: number;
}

/** The shortest and longest wait of a handler, in milliseconds. */
export interface WaitRange {
  readonly minMs: number;
  readonly maxMs: number;
}

/** `ready` once it is connected; `progress` while it works; `failed` before it ends with an error. */
export type FromWorker =
  | { readonly type: "ready" }
  | { readonly type: "progress"; readonly handlings: number }
  | { readonly type: "failed"; readonly message: string };

/** `start` when all workers are ready; `stop`: finish what is in hand and end. */
export type ToWorker = { readonly type: "start" } | { readonly type: "stop" };
