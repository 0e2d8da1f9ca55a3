import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { type Clock, pause } from "./clock.js";

/** An election of a replicated stream or bucket takes 4 to 9 s. */
const patienceMs = 15_000;
const againMs = 200;

export interface Patience {
  /** Which errors are asked again after; default: a request that was not answered, or met no JetStream server. */
  readonly passes?: (error: unknown) => boolean;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks again while nobody answers, as during an election and for seconds after something was made on replicas. Rejects
 * with the last error after 15 s, at once with one that does not pass, and with the signal's reason once it aborts.
 */
export async function patiently<T>(
  clock: Clock,
  ask: () => Promise<T>,
  { passes = isUnanswered, signal }: Patience = {},
): Promise<T> {
  const deadline = clock.now() + patienceMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!passes(error) || clock.now() >= deadline) throw error;
      await pause(clock, againMs, signal);
      signal?.throwIfAborted();
    }
  }
}

/** Tries again until something comes of it; undefined when nothing has after 15 s. Rejects once the signal aborts. */
export async function persistently<T>(
  clock: Clock,
  attempt: () => Promise<T | undefined>,
  { signal }: Pick<Patience, "signal"> = {},
): Promise<T | undefined> {
  const deadline = clock.now() + patienceMs;
  for (;;) {
    const result = await attempt();
    if (result !== undefined || clock.now() >= deadline) return result;
    await pause(clock, againMs, signal);
    signal?.throwIfAborted();
  }
}

function isUnanswered(error: unknown): boolean {
  return (
    LanekeeperError.is(error) && (error.code === "REQUEST_TIMEOUT" || error.code === "JETSTREAM_UNAVAILABLE")
  );
}
