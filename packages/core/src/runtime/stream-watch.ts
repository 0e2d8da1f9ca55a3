import type { LaneLayout } from "@lanekeeper/partitioner";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { layoutFault } from "../domain/layout-state.js";
import type { Clock, Timer } from "./clock.js";
import type { StreamPort, StreamSnapshot } from "./stream-port.js";

/** What a look at the stream found. */
export type StreamState =
  | { readonly type: "ok"; readonly snapshot: StreamSnapshot }
  /** It could not be read; nothing is known about it. */
  | { readonly type: "unreadable"; readonly error: LanekeeperError }
  | { readonly type: "missing"; readonly error: LanekeeperError }
  /** The same stream, or one made anew, whose layout is not the one this process works by (O8). */
  | { readonly type: "layout-fault"; readonly error: LanekeeperError; readonly snapshot: StreamSnapshot };

export interface StreamWatchOptions {
  /** Milliseconds between looks while all is well. */
  intervalMs: number;
  /** Milliseconds between looks while the stream is missing or its layout at fault. */
  faultIntervalMs: number;
}

const defaultStreamWatch: StreamWatchOptions = { intervalMs: 4_000, faultIntervalMs: 1_000 };

/**
 * Looks at the stream for all workers and publishers of one `openLanes`, as long as one of them observes: that is how
 * a layout that went backwards, a deleted stream and one made anew are noticed without a message being in flight.
 */
export class StreamWatch {
  readonly #port: StreamPort;
  readonly #layout: LaneLayout;
  readonly #clock: Clock;
  readonly #options: StreamWatchOptions;
  readonly #observers = new Set<(state: StreamState) => void>();
  #timer: Timer | undefined;
  #looking: Promise<StreamState> | undefined;

  constructor(port: StreamPort, layout: LaneLayout, clock: Clock, options = defaultStreamWatch) {
    this.#port = port;
    this.#layout = layout;
    this.#clock = clock;
    this.#options = options;
  }

  /** Calls `observer` after every look until the returned function is called. */
  observe(observer: (state: StreamState) => void): () => void {
    this.#observers.add(observer);
    this.#timer ??= this.#clock.after(this.#options.intervalMs, () => void this.look());
    return () => {
      this.#observers.delete(observer);
      if (this.#observers.size === 0) this.#stopTimer();
    };
  }

  /** Looks now and tells every observer; concurrent callers share one look. Never rejects. */
  look(): Promise<StreamState> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookOnce(): Promise<StreamState> {
    this.#stopTimer();
    const state = await this.#read();
    for (const observer of [...this.#observers]) observer(state);
    if (this.#observers.size > 0) {
      const { intervalMs, faultIntervalMs } = this.#options;
      this.#timer ??= this.#clock.after(
        state.type === "ok" ? intervalMs : faultIntervalMs,
        () => void this.look(),
      );
    }
    return state;
  }

  async #read(): Promise<StreamState> {
    try {
      const snapshot = await this.#port.read();
      const error = layoutFault(this.#layout, snapshot);
      return error === undefined ? { type: "ok", snapshot } : { type: "layout-fault", error, snapshot };
    } catch (error) {
      const known = LanekeeperError.is(error)
        ? error
        : new LanekeeperError("API_ERROR", String(error), { cause: error });
      return known.code === "STREAM_NOT_FOUND"
        ? { type: "missing", error: known }
        : { type: "unreadable", error: known };
    }
  }

  #stopTimer(): void {
    this.#timer?.stop();
    this.#timer = undefined;
  }
}
