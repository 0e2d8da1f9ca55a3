import { LanekeeperError } from "./lanekeeper-error.js";

/** Thrown by a handler: this event can never succeed; skip the retries and act as when the attempts are spent. */
export class TerminalError extends LanekeeperError {
  constructor(message: string, options?: ErrorOptions) {
    super("TERMINAL", message, options);
    this.name = "TerminalError";
  }
}

/**
 * Thrown by a handler: try again. `retryAfterMs` (0 or more; above 86,400,000, a day, it counts as a day)
 * replaces the next delay of the retry policy, for a dependency that says when it will be back.
 */
export class RetryableError extends LanekeeperError {
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options?: ErrorOptions & { retryAfterMs?: number }) {
    super("RETRYABLE", message, options);
    this.name = "RetryableError";
    this.retryAfterMs = options?.retryAfterMs;
  }
}
