import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Codec } from "../domain/codec.js";
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
  /** Made when the signal is looked at or aborted: most handlers need none, and it is the dearest part of a run. */
  #controller: AbortController | undefined;
  #timeout: Timer | undefined;
  #timedOutAt: number | undefined;
  #abortedAt: number | undefined;
  #stuckReports = 0;

  /** `startedAt`: now. */
  constructor(key: string, seq: number, clock: Clock, startedAt = clock.now()) {
    this.key = key;
    this.seq = seq;
    this.#clock = clock;
    this.startedAt = startedAt;
  }

  get ageMs(): number {
    return this.#clock.now() - this.startedAt;
  }

  /** Aborts the handler's signal; `code` says why. The first abort counts. */
  abort(code: "FENCED" | "HANDLER_TIMEOUT" | "CLOSING", message: string): void {
    if (this.#abortedAt !== undefined) return;
    this.#abortedAt = this.#clock.now();
    this.#controller ??= new AbortController();
    this.#controller.abort(new LanekeeperError(code, message));
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  /** True, at ever longer intervals, while the handler ignores that its signal was aborted. */
  reportStuck(): boolean {
    if (this.#abortedAt === undefined) return false;
    const due = this.#clock.now() - this.#abortedAt >= 1_000 * 4 ** this.#stuckReports;
    if (due) this.#stuckReports++;
    return due;
  }

  /**
   * Reads the data and calls the handler with `meta`, which becomes the event: it is this run's own. The outcome is
   * returned when nothing had to be waited for; otherwise `settled` is called with it, once, later. Spares the many short
   * handlers a promise, and the others all but one. `isOurs` is asked again after a wait, because reading the data
   * may have taken its time (O6).
   */
  execute<E extends object>(
    meta: EventMeta & { type: string },
    options: ResolvedWorkerOptions,
    handler: Handler<E>,
    fence: Fence,
    isOurs: () => boolean,
    settled: (outcome: RunOutcome) => void,
  ): RunOutcome | undefined {
    const { handlerTimeoutMs } = options;
    if (handlerTimeoutMs !== undefined) {
      this.#timeout = this.#clock.after(handlerTimeoutMs, () => {
        this.#timedOutAt = this.#clock.now();
        this.abort("HANDLER_TIMEOUT", `the handler ran longer than handlerTimeoutMs ${handlerTimeoutMs}`);
      });
    }
    const read = decode(meta, options.codec);
    if ("failure" in read) return this.#settle({ type: "failed", ...read.failure });
    const schema = options.schemaFor(meta.type);
    if (schema === undefined) {
      if (this.#abortedAt !== undefined) return this.#settle({ type: "unstarted" });
      return this.#call(meta, read.data, options, handler, fence, settled);
    }
    void conform(read.data, meta.type, schema).then((conformed) => {
      const outcome =
        this.#unfit(conformed, isOurs) ??
        this.#call(meta, "data" in conformed ? conformed.data : undefined, options, handler, fence, settled);
      if (outcome !== undefined) settled(outcome);
    });
    return undefined;
  }

  /** Why the handler is not to be called with data that had to be waited for, if so. */
  #unfit(decoded: Decoded, isOurs: () => boolean): RunOutcome | undefined {
    if ("failure" in decoded) return this.#settle({ type: "failed", ...decoded.failure });
    if (this.#timedOutAt !== undefined) return this.#settle({ type: "handled" });
    if (this.#abortedAt !== undefined || !isOurs()) return this.#settle({ type: "unstarted" });
    return undefined;
  }

  #call<E extends object>(
    meta: EventMeta & { type: string },
    data: unknown,
    options: ResolvedWorkerOptions,
    handler: Handler<E>,
    fence: Fence,
    settled: (outcome: RunOutcome) => void,
  ): RunOutcome | undefined {
    // A copy of the dozen properties would cost as much as the rest of the run (ADR 13).
    const event = meta as EventMeta & { type: string; data?: unknown };
    event.data = data;
    try {
      const context = new RunContext(this, fence, options.group, options.name);
      const result: unknown = handler(event as unknown as LaneEvent<E>, context);
      if (!isThenable(result)) return this.#settle({ type: "handled" });
      void Promise.resolve(result).then(
        () => settled(this.#settle({ type: "handled" })),
        (thrown) => settled(this.#settle({ type: "failed", ...handlerFailure(thrown) })),
      );
      return undefined;
    } catch (thrown) {
      return this.#settle({ type: "failed", ...handlerFailure(thrown) });
    }
  }

  /** Whatever a handler does once its time is over, its run counts as failed. */
  #settle(outcome: RunOutcome): RunOutcome {
    this.#timeout?.stop();
    return this.#timedOutAt === undefined || outcome.type === "unstarted"
      ? outcome
      : { type: "failed", ...this.#timeoutFailure() };
  }

  #timeoutFailure(): HandlerFailure {
    const message = `the handler of key "${this.key}" took ${Math.round(this.ageMs)} ms, longer than handlerTimeoutMs`;
    return {
      error: new LanekeeperError("HANDLER_TIMEOUT", message),
      terminal: false,
      retryAfterMs: undefined,
    };
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function"
  );
}

/** What a handler is given; the signal is made when it is looked at. */
class RunContext implements HandlerContext {
  readonly fence: Fence;
  readonly group: string;
  readonly workerId: string;
  readonly #run: HandlerRun;

  constructor(run: HandlerRun, fence: Fence, group: string, workerId: string) {
    this.#run = run;
    this.fence = fence;
    this.group = group;
    this.workerId = workerId;
    Object.freeze(this);
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }
}

type Decoded = { readonly data: unknown } | { readonly failure: HandlerFailure };

function decode({ bytes, type }: { bytes: Uint8Array; type: string }, codec: Codec): Decoded {
  try {
    return { data: codec.decode(bytes, type) };
  } catch (cause) {
    return { failure: decodeFailure(type, cause) };
  }
}

async function conform(data: unknown, type: string, schema: StandardSchemaV1): Promise<Decoded> {
  try {
    const result = await schema["~standard"].validate(data);
    return result.issues === undefined
      ? { data: result.value }
      : { failure: schemaFailure(type, result.issues) };
  } catch (cause) {
    return { failure: schemaBroke(type, cause) };
  }
}
