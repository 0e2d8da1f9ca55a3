import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";

const CONSUMER_NOT_FOUND = 10014;

/**
 * Deletes a consumer that may be in use: 2.10 can answer "directory not empty" for one, and has deleted it all the same.
 * A worker may have made it again by then, so it counts as deleted as soon as it is not the one of before.
 *
 * @throws JetStreamApiError what the server answered, where the consumer is still there.
 */
export async function deleteConsumer(manager: JetStreamManager, stream: string, name: string): Promise<void> {
  const before = await createdAt(manager, stream, name);
  try {
    await manager.consumers.delete(stream, name);
  } catch (error) {
    if (!(error instanceof JetStreamApiError)) throw error;
    if (before === undefined || (await createdAt(manager, stream, name)) === before) throw error;
  }
}

/** Undefined: there is no such consumer. */
async function createdAt(
  manager: JetStreamManager,
  stream: string,
  name: string,
): Promise<string | undefined> {
  try {
    return String((await manager.consumers.info(stream, name)).created);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === CONSUMER_NOT_FOUND) return undefined;
    throw error;
  }
}
