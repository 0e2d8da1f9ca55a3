import { setTimeout as sleep } from "node:timers/promises";

export interface AwaitConditionOptions {
  /** How long to wait, in milliseconds. Default 20,000. */
  timeoutMs?: number;
  /** Between two questions, in milliseconds. Default 20. */
  everyMs?: number;
  /** What is waited for, for the error: "worker B to start m1". The function form is asked at the end. */
  what: string | (() => string);
}

/**
 * Asks until the answer is neither `undefined`, `null` nor `false`, and returns it.
 *
 * @throws Error naming what was waited for and for how long; whatever the question throws is passed on at once.
 */
export async function awaitCondition<T>(
  ask: () => Promise<T> | T,
  options: AwaitConditionOptions,
): Promise<Exclude<T, undefined | null | false>> {
  const timeoutMs = options.timeoutMs ?? 20_000;
  const deadlineAt = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) {
      return answer as Exclude<T, undefined | null | false>;
    }
    if (performance.now() >= deadlineAt) {
      throw tooLate(timeoutMs, options.what);
    }
    await sleep(options.everyMs ?? 20);
  }
}

/** The promise's own result, or an error naming what took too long. The work itself goes on. */
export async function within<T>(
  work: Promise<T>,
  timeoutMs: number,
  what: string | (() => string),
): Promise<T> {
  const timer = new AbortController();
  const late = sleep(timeoutMs, undefined, { signal: timer.signal }).then(() => {
    throw tooLate(timeoutMs, what);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
    late.catch(() => {});
  }
}

function tooLate(timeoutMs: number, what: string | (() => string)): Error {
  return new Error(`waited ${timeoutMs} ms for ${typeof what === "string" ? what : what()}`);
}
