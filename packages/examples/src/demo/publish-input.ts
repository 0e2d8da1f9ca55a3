import type { Lanes } from "@lanekeeper/core";
import { placeHeaders } from "./delivery.js";
import type { InputEvent } from "./input-event.js";

/**
 * Few, so that the stream's order is all but the input's. A publisher keeps the order of a key; with much in hand it
 * lets other keys go first, and would spread a key's events far apart.
 */
const MAX_PENDING = 16;

/**
 * Publishes an input as it is being read; reading waits while the publisher's buffer is full.
 *
 * @param onPublished told how many events have been handed over so far
 * @returns how many there were, once all are stored
 * @throws what reading or the first failing publish threw
 */
export async function publishInput(
  lanes: Lanes<Record<string, unknown>>,
  input: AsyncIterable<InputEvent> | Iterable<InputEvent>,
  onPublished: (count: number) => void,
): Promise<number> {
  let count = 0;
  let failure: { error: unknown } | undefined;
  const publisher = lanes.publisher({ maxPending: MAX_PENDING });
  for await (const { key, type, data, place } of input) {
    await publisher.ready();
    if (failure !== undefined) throw failure.error;
    publisher.publish({ key, type, data, headers: placeHeaders(place) }).catch((error: unknown) => {
      failure ??= { error };
    });
    onPublished(++count);
  }
  await publisher.close();
  if (failure !== undefined) throw failure.error;
  return count;
}
