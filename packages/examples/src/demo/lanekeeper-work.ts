import type { Lanes } from "@lanekeeper/core";
import type { StopWork } from "./baseline-work.js";
import { placeOf } from "./delivery.js";
import type { DeliveryHandler } from "./delivery-handler.js";

/** The group that the workers of the demo form. */
const DEMO_GROUP = "demo";

/** Different keys of one lane side by side, up to this many. */
const MAX_ACK_PENDING = 16;

/**
 * @param concurrency handlers at once in this worker
 * @param onError called when the worker ended by itself
 */
export async function lanekeeperWork(
  lanes: Lanes<Record<string, unknown>>,
  concurrency: number,
  handle: DeliveryHandler,
  onError: (error: unknown) => void,
): Promise<StopWork> {
  const options = { group: DEMO_GROUP, maxAckPending: MAX_ACK_PENDING, concurrency };
  const worker = await lanes.work(options, async (event, context) => {
    const place = placeOf((name) => event.headers[name]?.[0] ?? "");
    await handle({ ...event, place }, context.fence.incarnation);
  });
  void worker.closed.then((reason) => {
    if (reason.type !== "closed") onError(reason.error);
  });
  return () => worker.close();
}
