import { type LaneLayout, parseLaneSubject } from "@lanekeeper/partitioner";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { awaitCondition } from "./await-condition.js";
import type { StoredEvent } from "./history-record.js";
import { CALL_HEADER } from "./program-options.js";

/** More than this in one test's stream is a mistake in the test. */
const MAX_EVENTS = 200_000;
/** Without an event for this long while the stream says there is one, the reading is given up. */
const SILENCE_MS = 10_000;

/**
 * Every event of a stream in order, read from the server. The stream must be at rest.
 *
 * @throws Error on an event whose subject is not one of the layout's.
 */
export async function readStoredEvents(
  connection: NatsConnection,
  stream: string,
  layout: LaneLayout,
): Promise<StoredEvent[]> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  // A node that has just come back may not answer for JetStream yet, nor may the others meanwhile.
  const patience = { what: `stream ${stream} to be read`, timeoutMs: 30_000 };
  const info = () => manager.streams.info(stream).catch(() => undefined);
  const { messages } = (await awaitCondition(info, patience)).state;
  if (messages > MAX_EVENTS) throw new Error(`${stream} holds ${messages} events, over ${MAX_EVENTS}`);
  const events: StoredEvent[] = [];
  if (messages === 0) return events;
  const read = () =>
    jetstream(connection)
      .consumers.get(stream)
      .catch(() => undefined);
  const consumer = await awaitCondition(read, patience);
  while (events.length < messages) {
    const before = events.length;
    const batch = await consumer.fetch({
      max_messages: Math.min(1_000, messages - before),
      expires: SILENCE_MS,
    });
    for await (const message of batch) {
      const { lane, key, type } = parseLaneSubject(layout, message.subject);
      const [process, call] = splitCall(message.headers?.get(CALL_HEADER) ?? "");
      const publishedBy = process === undefined ? {} : { publishedBy: { process, call } };
      const batchId = message.headers?.get("Nats-Batch-Id");
      const inBatch = batchId ? { batch: batchId } : {};
      events.push({ seq: message.seq, key, lane, type, ...publishedBy, ...inBatch });
    }
    if (events.length === before)
      throw new Error(`${stream}: read ${before} of ${messages} events, then silence`);
  }
  return events;
}

function splitCall(text: string): [string | undefined, number] {
  const colon = text.lastIndexOf(":");
  return colon < 0 ? [undefined, 0] : [text.slice(0, colon), Number(text.slice(colon + 1))];
}
