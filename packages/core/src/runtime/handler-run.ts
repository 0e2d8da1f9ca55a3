import type { EventMeta, Fence, Handler, HandlerContext, LaneEvent } from "../domain/event.js";
import {
  decodeFailure,
  type HandlerFailure,
  handlerFailure,
  schemaBroke,
  schemaFailure,
} from "../domain/handler-outcome.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { ResolvedWorkerOptions } from "../domain/worker-options.js";
import type { Clock, Timer } from "./clock.js";

export type RunOutcome =
  | { readonly type: "handled" }
  /** The handler was not called: the event was no longer ours, or its worker's grace over, when its data had been read. */
  | { readonly type: "unstarted" }
  | ({ readonly type: "failed" } & HandlerFailure);

/** One run of the handler for one event. It settles exactly once, when the handler has, and never rejects. */
export class HandlerRun {
  readonly key: string;
  readonly seq: number;
  readonly startedAt: number;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  #timeout: Timer | undefined;
  #timedOutAt: number | undefined;
  #abortedAt: number | undefined;
  #stuckReports = 0;

  constructor(key: string, seq: number, clock: Clock) {
    this.key = key;
    this.seq = seq;
    this.#clock = clock;
    this.startedAt = clock.now();
  }

  get ageMs(): number {
    return this.#clock.now() - this.startedAt;
  }

  /** Aborts the handler's signal; `code` says why. The first abort counts. */
  abort(code: "FENCED" | "HANDLER_TIMEOUT" | "CLOSING", message: string): void {
    if (this.#controller.signal.aborted) return;
    this.#abortedAt = this.#clock.now();
    this.#controller.abort(new LanekeeperError(code, message));
  }

  /** True, at ever longer intervals, while the handler ignores that its signal was aborted. */
  reportStuck(): boolean {
    if (this.#abortedAt === undefined) return false;
    const due = this.#clock.now() - this.#abortedAt >= 1_000 * 4 ** this.#stuckReports;
    if (due) this.#stuckReports++;
    return due;
  }

  /** `isOurs` is asked right before the handler is called, because reading the data may have taken its time (O6). */
  async execute<E extends object>(
    meta: EventMeta & { type: string },
    options: ResolvedWorkerOptions,
    handler: Handler<E>,
    fence: Fence,
    isOurs: () => boolean,
  ): Promise<RunOutcome> {
    const { handlerTimeoutMs } = options;
    if (handlerTimeoutMs !== undefined) {
      this.#timeout = this.#clock.after(handlerTimeoutMs, () => {
        this.#timedOutAt = this.#clock.now();
        this.abort("HANDLER_TIMEOUT", `the handler ran longer than handlerTimeoutMs ${handlerTimeoutMs}`);
      });
    }
    try {
      const decoded = await decode(meta, options);
      if ("failure" in decoded) return { type: "failed", ...decoded.failure };
      if (this.#timedOutAt !== undefined) return { type: "failed", ...this.#timeoutFailure() };
      if (this.#controller.signal.aborted || !isOurs()) return { type: "unstarted" };
      const event = Object.freeze({ ...meta, data: decoded.data }) as unknown as LaneEvent<E>;
      const context: HandlerContext = Object.freeze({
        signal: this.#controller.signal,
        fence,
        group: options.group,
        workerId: options.name,
      });
      await handler(event, context);
      return this.#timedOutAt === undefined
        ? { type: "handled" }
        : { type: "failed", ...this.#timeoutFailure() };
    } catch (thrown) {
      return {
        type: "failed",
        ...(this.#timedOutAt === undefined ? handlerFailure(thrown) : this.#timeoutFailure()),
      };
    } finally {
      this.#timeout?.stop();
    }
  }

  /** Whatever a handler does once its time is over, its run counts as failed. */
  #timeoutFailure(): HandlerFailure {
    const message = `the handler of key "${this.key}" took ${Math.round(this.ageMs)} ms, longer than handlerTimeoutMs`;
    return {
      error: new LanekeeperError("HANDLER_TIMEOUT", message),
      terminal: false,
      retryAfterMs: undefined,
    };
  }
}

async function decode(
  { bytes, type }: { bytes: Uint8Array; type: string },
  { codec, schemaFor }: ResolvedWorkerOptions,
): Promise<{ data: unknown } | { failure: HandlerFailure }> {
  let data: unknown;
  try {
    data = codec.decode(bytes, type);
  } catch (cause) {
    return { failure: decodeFailure(type, cause) };
  }
  const schema = schemaFor(type);
  if (schema === undefined) return { data };
  try {
    const result = await schema["~standard"].validate(data);
    return result.issues === undefined
      ? { data: result.value }
      : { failure: schemaFailure(type, result.issues) };
  } catch (cause) {
    return { failure: schemaBroke(type, cause) };
  }
}
