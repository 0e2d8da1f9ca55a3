import { type OptionFaults, show } from "./option-faults.js";

/**
 * How a failed event is tried again. Delays grow as `initialDelayMs × factor^n`, never beyond `maxDelayMs`; jitter only
 * lengthens them, by up to `jitter` of each. The defaults span about 140 s: longer than a restart of a dependency,
 * short enough that one bad event is found out in minutes.
 */
export interface RetryOptions {
  /** Handler runs before the event counts as exhausted, the first one included. 1 to 1,000,000; default 12. */
  attempts?: number;
  /** Milliseconds; 0 to 86,400,000; default 200. */
  initialDelayMs?: number;
  /** 1 to 100; default 2. */
  factor?: number;
  /** Milliseconds; at least initialDelayMs, at most 86,400,000; default 30,000. */
  maxDelayMs?: number;
  /** 0 to 1; default 0.2. */
  jitter?: number;
}

export interface RetryPolicy {
  readonly attempts: number;
  readonly initialDelayMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  readonly jitter: number;
}

const dayMs = 86_400_000;

export function resolveRetry(options: RetryOptions | undefined, faults: OptionFaults): RetryPolicy {
  const given = options ?? {};
  if (typeof given !== "object") {
    faults.add(`retry must be an object, not ${show(given)}`);
    return resolveRetry(undefined, faults);
  }
  faults.unknown(given, ["attempts", "initialDelayMs", "factor", "maxDelayMs", "jitter"]);
  const policy = Object.freeze({
    attempts: faults.number("retry.attempts", given.attempts, 12, { min: 1, max: 1_000_000 }),
    initialDelayMs: faults.number("retry.initialDelayMs", given.initialDelayMs, 200, {
      min: 0,
      max: dayMs,
      fraction: true,
    }),
    factor: faults.number("retry.factor", given.factor, 2, { min: 1, max: 100, fraction: true }),
    maxDelayMs: faults.number("retry.maxDelayMs", given.maxDelayMs, 30_000, {
      min: 0,
      max: dayMs,
      fraction: true,
    }),
    jitter: faults.number("retry.jitter", given.jitter, 0.2, { min: 0, max: 1, fraction: true }),
  });
  if (policy.maxDelayMs < policy.initialDelayMs) {
    faults.add(
      `retry.maxDelayMs ${policy.maxDelayMs} is less than retry.initialDelayMs ${policy.initialDelayMs}`,
    );
  }
  return policy;
}

/** Milliseconds to wait after the `failures`-th failure (from 1). `roll` is a random number from 0 to 1. */
export function retryDelayMs(policy: RetryPolicy, failures: number, roll: number): number {
  // The power can be infinite, and 0 × ∞ is not a delay.
  const grown = policy.initialDelayMs * Math.min(policy.factor ** (failures - 1), Number.MAX_VALUE);
  return Math.min(grown, policy.maxDelayMs) * (1 + policy.jitter * roll);
}
