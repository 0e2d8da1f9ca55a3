import { LanekeeperError } from "./lanekeeper-error.js";
import { describeThrown } from "./thrown.js";

/** How a handler's failure is acted on. */
export interface HandlerFailure {
  readonly error: LanekeeperError;
  /** No retry can help. */
  readonly terminal: boolean;
  /** Replaces the policy's next delay. */
  readonly retryAfterMs: number | undefined;
}

/** A day, as for the retry policy's own delays: a timer cannot be set for more than 24.8 days. */
const maxDelayMs = 86_400_000;

/** Reads what a handler threw, whatever it is: handlers steer by TerminalError and RetryableError, anything else is retried. */
export function handlerFailure(thrown: unknown): HandlerFailure {
  try {
    if (LanekeeperError.is(thrown)) {
      if (thrown.code === "TERMINAL") return { error: thrown, terminal: true, retryAfterMs: undefined };
      if (thrown.code === "RETRYABLE") {
        const { retryAfterMs } = thrown as { retryAfterMs?: unknown };
        const usable = typeof retryAfterMs === "number" && retryAfterMs >= 0 && Number.isFinite(retryAfterMs);
        const bounded = usable ? Math.min(retryAfterMs, maxDelayMs) : undefined;
        return { error: thrown, terminal: false, retryAfterMs: bounded };
      }
    }
  } catch {
    // Its getters throw: it is none of ours, and described below as far as it lets itself be.
  }
  const error = new LanekeeperError("HANDLER_FAILED", `the handler threw ${describeThrown(thrown)}`, {
    cause: thrown,
  });
  return { error, terminal: false, retryAfterMs: undefined };
}

/** A payload the codec could not read. */
export function decodeFailure(type: string, cause: unknown): HandlerFailure {
  const message = `the codec could not decode an event of type "${type}": ${describeThrown(cause)}`;
  return {
    error: new LanekeeperError("DECODE_FAILED", message, { cause }),
    terminal: true,
    retryAfterMs: undefined,
  };
}

/** Data the schema does not accept. */
export function schemaFailure(
  type: string,
  issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[],
): HandlerFailure {
  const list = issues.slice(0, 5).map(({ message, path }) => `${pathText(path)}${message}`);
  const message = `the data of an event of type "${type}" does not fit its schema: ${list.join("; ")}`;
  return { error: new LanekeeperError("SCHEMA_MISMATCH", message), terminal: true, retryAfterMs: undefined };
}

/** A schema that threw instead of answering: it may have asked something that is down, so it is tried again. */
export function schemaBroke(type: string, cause: unknown): HandlerFailure {
  const message = `the schema for events of type "${type}" threw instead of answering: ${describeThrown(cause)}`;
  return {
    error: new LanekeeperError("SCHEMA_MISMATCH", message, { cause }),
    terminal: false,
    retryAfterMs: undefined,
  };
}

function pathText(path: readonly unknown[] | undefined): string {
  if (path === undefined || path.length === 0) return "";
  const names = path.map((part) =>
    typeof part === "object" && part !== null && "key" in part ? part.key : part,
  );
  return `${names.map(String).join(".")}: `;
}
