import type { CreateLanes, PublisherOptions, WorkerOptions } from "@lanekeeper/core";

/** What every program in `programs/` is told, as JSON. */
export interface ProgramOptions {
  /** The name its history is written under; also its connection's name. */
  process: string;
  historyFolder: string;
  /** One URL, or all of a cluster. */
  servers: string | string[];
  stream: string;
  create?: CreateLanes;
}

export interface WorkerProgramOptions extends ProgramOptions {
  /** Options of `work()` that JSON can carry. */
  work: Omit<WorkerOptions<Record<string, unknown>>, "codec" | "schema" | "signal" | "onNotification">;
  /** What handlers do: the first rule that matches; without any they succeed at once. */
  handler?: HandlerRule[];
  /** Fields of the event's data to keep in the history. Default: `n`. */
  keep?: string[];
  /** Given to `close()` on SIGTERM. */
  graceMs?: number;
}

export interface HandlerRule {
  /** All that is given must match; absent matches every event. `n` is the data's own field. */
  when?: { key?: string; type?: string; n?: number; attempt?: number };
  act: HandlerAct;
}

export type HandlerAct =
  /** Succeeds after so long. With `heedsSignal` it fails as soon as its signal aborts; otherwise it ignores it. */
  | { type: "succeed"; afterMs?: number; heedsSignal?: boolean }
  /** Fails its first `times` attempts (default: every one), then succeeds. */
  | { type: "fail"; times?: number; error?: "error" | "terminal" | "retryable"; retryAfterMs?: number }
  /** A promise that nobody settles. */
  | { type: "never-settle" }
  /**
   * Blocks the event loop, as a long computation does; recorded as a freeze, for it keeps nothing alive. With `times`
   * only so often in this process, after which it succeeds at once.
   */
  | { type: "block-loop"; forMs: number; times?: number }
  /** Stops its own process (SIGSTOP) inside the handler, and succeeds as the very first thing after the thaw. */
  | { type: "freeze-self" }
  /** Kills its own process with -9 inside the handler. */
  | { type: "kill-self" };

export interface PublisherProgramOptions extends ProgramOptions {
  publisher?: Omit<PublisherOptions, "codec">;
  events: EventSource;
  /** At most so many calls per second. Default: as fast as there is room. */
  perSecond?: number;
}

export type EventSource =
  /** Each line of an NDJSON file: its whole record is the data. */
  | { type: "ndjson"; file: string; keyField: string; typeField: string }
  /** `count` events over so many keys `key-0`, `key-1`… in turn; the data is `{ n }`, the position in its key. */
  | { type: "turns"; count: number; keys: number; eventType?: string }
  /** The same, the keys drawn with Zipf popularity; until it is told to stop when `count` is not given. */
  | { type: "zipf"; count?: number; keys: number; seed: number };

/** A header that names the recorded call in the stored event: `<process>:<call>`. */
export const CALL_HEADER = "Test-Call";
