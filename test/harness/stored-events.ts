import { type LaneLayout, parseLaneSubject } from "@lanekeeper/partitioner";
import { type JsMsg, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { awaitCondition, within } from "./await-condition.js";
import type { StoredEvent } from "./history-record.js";
import { CALL_HEADER } from "./program-options.js";

/** More than this in one test's stream is a mistake in the test. */
const MAX_EVENTS = 200_000;
/** A pull that brings nothing for this long is given up, and another consumer goes on. */
const SILENCE_MS = 5_000;
/** What a pull of the most events may take on a slow machine. */
const PULL_MS = 15_000;
/** As long as reading may take, elections and restarts of servers included. */
const READ_MS = 60_000;

/**
 * Every event of a stream in order, read from the server. The stream must be at rest.
 *
 * A node that has just come back may not answer for JetStream yet, nor may the others meanwhile: whatever fails or stays
 * silent is asked again, by another consumer from the last event on.
 *
 * @throws Error after a minute, with the last failure; at once on an event whose subject is not one of the layout's.
 */
export async function readStoredEvents(
  connection: NatsConnection,
  stream: string,
  layout: LaneLayout,
): Promise<StoredEvent[]> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const events: StoredEvent[] = [];
  let failure: unknown = "silence";
  const readOn = async (): Promise<boolean> => {
    const messages: JsMsg[] = [];
    let stored: number | undefined;
    try {
      stored = (await manager.streams.info(stream)).state.messages;
      if (stored > events.length && stored <= MAX_EVENTS) {
        await pull(connection, stream, (events.at(-1)?.seq ?? 0) + 1, stored - events.length, messages);
      }
    } catch (error) {
      failure = error;
    }
    if (stored !== undefined && stored > MAX_EVENTS)
      throw new Error(`${stream} holds ${stored} events, over ${MAX_EVENTS}`);
    for (const message of messages) events.push(storedEvent(message, layout));
    return events.length === stored;
  };
  await awaitCondition(readOn, {
    what: () => `stream ${stream} to be read (so far ${events.length} events; ${failure})`,
    timeoutMs: READ_MS,
    everyMs: 50,
  });
  return events;
}

/** Takes up to `count` messages from `fromSeq` on into `into`, which has what came also where this rejects. */
async function pull(
  connection: NatsConnection,
  stream: string,
  fromSeq: number,
  count: number,
  into: JsMsg[],
): Promise<void> {
  const consumer = await jetstream(connection).consumers.get(stream, { opt_start_seq: fromSeq });
  let more = true;
  while (more && into.length < count) {
    const before = into.length;
    const batch = await consumer.fetch({
      max_messages: Math.min(1_000, count - before),
      expires: SILENCE_MS,
    });
    const take = async (): Promise<void> => {
      for await (const message of batch) into.push(message);
    };
    try {
      await within(take(), PULL_MS, "a pull to end");
    } finally {
      void batch.close();
    }
    more = into.length > before;
  }
}

function storedEvent(message: JsMsg, layout: LaneLayout): StoredEvent {
  const { lane, key, type } = parseLaneSubject(layout, message.subject);
  const [process, call] = splitCall(message.headers?.get(CALL_HEADER) ?? "");
  const publishedBy = process === undefined ? {} : { publishedBy: { process, call } };
  const batchId = message.headers?.get("Nats-Batch-Id");
  const inBatch = batchId ? { batch: batchId } : {};
  return { seq: message.seq, key, lane, type, ...publishedBy, ...inBatch };
}

function splitCall(text: string): [string | undefined, number] {
  const colon = text.lastIndexOf(":");
  return colon < 0 ? [undefined, 0] : [text.slice(0, colon), Number(text.slice(colon + 1))];
}
