import { setTimeout as sleep } from "node:timers/promises";

/**
 * Asks again and again until the answer is something other than undefined.
 *
 * @param ask may throw to give up at once.
 * @returns the answer, or undefined when `deadlineAt` (of `performance.now()`) passed without one.
 */
export async function waitUntil<T>(
  ask: () => Promise<T | undefined> | T | undefined,
  deadlineAt: number,
  everyMs = 25,
): Promise<T | undefined> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() >= deadlineAt) return undefined;
    await sleep(everyMs);
  }
}
