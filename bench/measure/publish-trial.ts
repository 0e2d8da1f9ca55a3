import { setTimeout as sleep } from "node:timers/promises";
import {
  type ConsumerMessages,
  DeliverPolicy,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { PublishSubject } from "../subjects/publish-subject.js";
import { type BenchData, EventMaker } from "../workload/bench-event.js";
import { type BenchStream, deleteStream } from "../workload/bench-stream.js";
import { between, takeMark } from "./mark.js";
import { OrderCheck } from "./order-check.js";
import type { Trial } from "./trial.js";

const STORED_DEADLINE_MS = 30_000;

/**
 * Has a subject publish one event for each entry of `sequence` into an empty stream, which is deleted afterwards, and
 * reads the stream back: everything must be stored, and each key's events in the order of the calls (P1).
 *
 * The clock runs from the first call to the last answer; opening and reading back do not count.
 *
 * @throws when an event is not stored.
 */
export async function publishTrial(
  subject: PublishSubject,
  stream: BenchStream,
  sequence: Uint32Array,
): Promise<Trial> {
  const serverPids = stream.server.nodes.flatMap(({ pid }) => pid ?? []);
  const connection = await connect({ servers: [...stream.server.urls] });
  try {
    const maker = new EventMaker(stream.keys);
    let from = takeMark(0, serverPids);
    const events = function* (): Generator<BenchData> {
      from = takeMark(0, serverPids);
      for (const key of sequence) yield maker.next(key);
    };
    await subject.publishAll(connection, stream, events());
    const to = takeMark(sequence.length, serverPids);
    const order = await readBack(connection, stream, sequence.length);
    return between(from, to, order.faults);
  } finally {
    await connection.close();
    await deleteStream(stream);
  }
}

async function readBack(
  connection: NatsConnection,
  stream: BenchStream,
  expected: number,
): Promise<OrderCheck> {
  const manager = await jetstreamManager(connection);
  const stored = await storedCount(manager, stream.name, expected);
  const order = new OrderCheck(stream.keys);
  if (stored < expected) throw new Error(`${expected} events were published and ${stored} are stored`);
  const consumer = await jetstream(connection).consumers.get(stream.name, {
    deliver_policy: DeliverPolicy.All,
  });
  const messages = await consumer.consume({ max_messages: 5_000 });
  const deadline = setTimeout(() => messages.stop(), STORED_DEADLINE_MS);
  try {
    await checkAll(messages, order, stored);
  } finally {
    clearTimeout(deadline);
  }
  if (order.started < expected) {
    throw new Error(`${expected - order.started} of ${expected} events are not stored`);
  }
  return order;
}

/** How many events are stored: where nobody acks, the last ones may still be on their way. */
async function storedCount(manager: JetStreamManager, stream: string, expected: number): Promise<number> {
  const deadline = performance.now() + STORED_DEADLINE_MS;
  for (;;) {
    const { state } = await manager.streams.info(stream);
    if (state.messages >= expected || performance.now() > deadline) return state.messages;
    await sleep(10);
  }
}

async function checkAll(messages: ConsumerMessages, order: OrderCheck, stored: number): Promise<void> {
  let read = 0;
  for await (const message of messages) {
    const { k, n } = message.json<BenchData>();
    order.start(k, n);
    order.end(k);
    if (++read === stored) break;
  }
}
