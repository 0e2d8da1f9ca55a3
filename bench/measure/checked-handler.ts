import type { Handle } from "../subjects/reader.js";
import type { BenchData } from "../workload/bench-event.js";
import type { OrderCheck } from "./order-check.js";
import type { Progress } from "./progress.js";

/**
 * A handler with the checks around it. Synchronous without `work`, and where `work` returns nothing: a handler that
 * does nothing must cost nothing more.
 */
export function checked<M>(
  order: OrderCheck,
  progress: Progress<M>,
  work: ((data: BenchData) => Promise<void> | undefined) | undefined,
): Handle {
  const end = (key: number) => {
    order.end(key);
    progress.end(order.ended);
  };
  return (data) => {
    progress.begin();
    order.start(data.k, data.n);
    const result = work?.(data);
    if (result === undefined) return end(data.k);
    return result.then(() => end(data.k));
  };
}

/** Says how many of the events were neither handled nor are waiting, if any. */
export function lostOf(order: OrderCheck, messages: number, unsettled: number): string | undefined {
  const lost = messages - order.started - unsettled;
  if (lost <= 0) return undefined;
  return `${lost} of ${messages} events were lost: neither handled nor are they waiting`;
}
