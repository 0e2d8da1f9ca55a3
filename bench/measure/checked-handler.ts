import type { Handle } from "../subjects/reader.js";
import type { OrderCheck } from "./order-check.js";
import type { Progress } from "./progress.js";
import type { Work } from "./read-trial.js";

/** A handler with the checks around it. Synchronous without `work`: a no-op handler must cost nothing more. */
export function checked<M>(order: OrderCheck, progress: Progress<M>, work: Work | undefined): Handle {
  const end = (key: number) => {
    order.end(key);
    progress.end(order.ended);
  };
  return (data) => {
    progress.begin();
    order.start(data.k, data.n);
    if (work === undefined) return end(data.k);
    return work(data).then(() => end(data.k));
  };
}

/** Says how many of the events were neither handled nor are waiting, if any. */
export function lostOf(order: OrderCheck, messages: number, unsettled: number): string | undefined {
  const lost = messages - order.started - unsettled;
  if (lost <= 0) return undefined;
  return `${lost} of ${messages} events were lost: neither handled nor are they waiting`;
}
