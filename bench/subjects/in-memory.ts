import type { BenchData } from "../workload/bench-event.js";
import type { Handle } from "./reader.js";

/**
 * The same handlers under the same rules without any messaging: one event of a key at a time, so many at once.
 * What Node.js's own timers make of the ideal.
 */
export async function runInMemory(
  events: readonly BenchData[],
  concurrency: number,
  handle: Handle,
): Promise<void> {
  const queues = new Map<number, BenchData[]>();
  for (const event of events) {
    const queue = queues.get(event.k);
    if (queue === undefined) queues.set(event.k, [event]);
    else queue.push(event);
  }
  const ready = [...queues.values()].map((queue) => queue.values());
  const worker = async () => {
    for (let key = ready.shift(); key !== undefined; key = ready.shift()) {
      const next = key.next();
      if (next.done) continue;
      const result = handle(next.value);
      if (result !== undefined) await result;
      // Its key goes to the back of the line: keys take turns.
      ready.push(key);
    }
  };
  // A worker that finds no key free may end: there are at most as many busy keys as workers, and each goes on.
  await Promise.all(Array.from({ length: concurrency }, worker));
}
