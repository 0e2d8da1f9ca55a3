import { setTimeout as sleep } from "node:timers/promises";
import { RetryableError, TerminalError } from "@lanekeeper/core";
import type { HistoryRecorder } from "../harness/history-recorder.js";
import type { HandlerAct, HandlerRule } from "../harness/program-options.js";

/** What a rule can look at. */
export interface ActingEvent {
  readonly key: string;
  readonly type: string;
  readonly attempt: number;
  readonly data: unknown;
}

let blocks = 0;

/** The first rule that matches; without one the handler succeeds at once. */
export function actFor(rules: readonly HandlerRule[], event: ActingEvent): HandlerAct {
  return rules.find((rule) => matches(rule.when ?? {}, event))?.act ?? { type: "succeed" };
}

/** Does what the rule says; throws where the handler is to fail. */
export async function carryOut(
  act: HandlerAct,
  event: ActingEvent,
  signal: AbortSignal,
  recorder: HistoryRecorder,
): Promise<void> {
  switch (act.type) {
    case "succeed":
      if (act.afterMs !== undefined) await sleep(act.afterMs, undefined, act.heedsSignal ? { signal } : {});
      return;
    case "fail":
      if (event.attempt <= (act.times ?? Number.POSITIVE_INFINITY)) throw failureOf(act, event.attempt);
      return;
    case "never-settle":
      await new Promise(() => {});
      return;
    case "block-loop": {
      if (++blocks > (act.times ?? Number.POSITIVE_INFINITY)) return;
      recorder.record({ kind: "frozen", about: recorder.process, why: "event loop blocked" });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, act.forMs);
      recorder.record({ kind: "thawed", about: recorder.process });
      return;
    }
    case "freeze-self":
      recorder.record({ kind: "frozen", about: recorder.process, why: "SIGSTOP from inside" });
      process.kill(process.pid, "SIGSTOP");
      return;
    case "kill-self":
      recorder.record({ kind: "killed", about: recorder.process });
      process.kill(process.pid, "SIGKILL");
      await new Promise(() => {});
  }
}

function matches(when: NonNullable<HandlerRule["when"]>, event: ActingEvent): boolean {
  return (
    (when.key === undefined || when.key === event.key) &&
    (when.type === undefined || when.type === event.type) &&
    (when.attempt === undefined || when.attempt === event.attempt) &&
    (when.n === undefined || when.n === fieldOf(event.data, "n"))
  );
}

/** A field of an event's data, if the data has any. */
export function fieldOf(data: unknown, name: string): unknown {
  return typeof data === "object" && data !== null ? Reflect.get(data, name) : undefined;
}

function failureOf(act: HandlerAct & { type: "fail" }, attempt: number): Error {
  const message = `planned failure of attempt ${attempt}`;
  if (act.error === "terminal") return new TerminalError(message);
  if (act.error !== "retryable") return new Error(message);
  return new RetryableError(
    message,
    act.retryAfterMs === undefined ? {} : { retryAfterMs: act.retryAfterMs },
  );
}
