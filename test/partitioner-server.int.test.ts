import { readFileSync } from "node:fs";
import { startTestServer } from "@lanekeeper/core/testing";
import {
  intakeSubject,
  type LaneLayout,
  laneFilter,
  laneOf,
  laneShares,
  laneSubject,
  layoutConfig,
  layoutFromMetadata,
  MAPPINGS,
  type Mapping,
  parseLaneSubject,
} from "@lanekeeper/partitioner";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

interface KeyedEvent {
  key: string;
  type: string;
}

const KEYS = 10_000;
const DEADLINE_MS = 30_000;
const IN_FLIGHT = 500;
const STREAM = "ORDERS";
const LANES_12: LaneLayout = {
  subject: "orders",
  generation: 1,
  lanes: 12,
  hash: "fnv1a",
  mapping: "stream",
};

// What a real server computes is compared on keys of every kind: ids, sentences, control characters, wildcards, all of Unicode.
const id = fc
  .tuple(fc.constantFrom("customer-", "order-", "device/", ""), fc.nat())
  .map(([prefix, number]) => prefix + number);
const anyCharacter = fc.oneof(
  fc.constantFrom(...".*>% \t\r\n\0\x01\x1f\x7f{}$\"'\\,()"),
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
  fc.constantFrom("é", "e\u0301", "日", "本", "ø", "😀", "👩‍💻", "\u{10ffff}"),
);
const text = fc
  .array(anyCharacter, { minLength: 1, maxLength: 24 })
  .map((characters) => characters.join(""))
  .filter((made) => made.isWellFormed());
const key = fc.oneof(id, fc.uuid(), fc.emailAddress(), text, text);
const typeToken = fc.oneof(
  fc.constantFrom("created", "order placed", "geändert"),
  text.map((made) => made.replaceAll(".", "-")),
);

describe("the lane computed here is the lane that nats-server's partition() computes", () => {
  test(`R01, R02, R03: a stream's subject_transform agrees on ${KEYS} keys of every kind over 12 lanes`, async () => {
    await using server = await startTestServer();
    await using client = await connected(server.url);
    await addStream(client.connection, LANES_12);
    const events = sample(KEYS, 1, 1);
    await publishAndCompare(client.connection, LANES_12, events);
    await expectLaneCounts(client.connection, LANES_12, events);
  });

  test("R01, R03: it agrees on the key in another place, a type with a tail, and 4,096 lanes of a later generation", async () => {
    const layout = { ...LANES_12, generation: 2, lanes: 4096, intake: "sensors.*.{key}.>" };
    await using server = await startTestServer();
    await using client = await connected(server.url);
    await addStream(client.connection, layout);
    await publishAndCompare(client.connection, layout, sample(2_000, 2, 4));
  });

  test(`R01, R02, R03: the account mapping of nats-server.conf agrees on ${KEYS} keys of every kind`, async () => {
    const layout: LaneLayout = { ...LANES_12, mapping: "account" };
    await using server = await startTestServer({ config: mappingsBlock(layout) });
    await using client = await connected(server.url);
    await addStream(client.connection, layout);
    const events = sample(KEYS, 1, 1);
    await publishAndCompare(client.connection, layout, events);
    await expectLaneCounts(client.connection, layout, events);
  });

  test("R01, R03: the account mapping agrees on the key in another place and a type with a tail", async () => {
    const layout: LaneLayout = {
      ...LANES_12,
      mapping: "account",
      subject: "shop.orders",
      lanes: 61,
      intake: "sensors.*.{key}.*.>",
    };
    await using server = await startTestServer({ config: mappingsBlock(layout) });
    await using client = await connected(server.url);
    await addStream(client.connection, layout);
    await publishAndCompare(client.connection, layout, sample(2_000, 3, 5));
  });

  test("R01, R02: it agrees on the published vectors, whose longest tokens have 512 bytes", async () => {
    const file = new URL(import.meta.resolve("@lanekeeper/partitioner/vectors.json"));
    const vectors: { keys: { key: string }[] } = JSON.parse(readFileSync(file, "utf8"));
    const events = vectors.keys.map((vector) => ({ key: vector.key, type: "created" }));
    expect(events.length).toBeGreaterThan(50);
    await using server = await startTestServer();
    await using client = await connected(server.url);
    await addStream(client.connection, LANES_12);
    await publishAndCompare(client.connection, LANES_12, events);
  });
});

describe("layoutConfig gives what a real server takes", () => {
  test.each(MAPPINGS)("mapping %s: the stream's metadata gives the layout back", async (mapping: Mapping) => {
    const layout: LaneLayout = { ...LANES_12, mapping };
    await using server = await startTestServer();
    await using client = await connected(server.url);
    await addStream(client.connection, layout);
    const manager = await jetstreamManager(client.connection);
    const { config } = await manager.streams.info(STREAM);
    const intake = mapping === "publisher" ? {} : { intake: "in.orders.{key}.*" };
    expect(layoutFromMetadata(config.metadata)).toEqual({ ...layout, ...intake });
  });

  test("R03: every lane subject is stored as it is, and one for a lane that does not exist is refused", async () => {
    const layout: LaneLayout = { ...LANES_12, hash: "murmur3", mapping: "publisher" };
    await using server = await startTestServer();
    await using client = await connected(server.url);
    await addStream(client.connection, layout);
    await publishAndCompare(client.connection, layout, sample(500, 1, 3));
    const client12 = jetstream(client.connection);
    await expect(client12.publish("orders.12.customer-42.created")).rejects.toThrow();
    await expect(client12.publish("orders.g2.1.customer-42.created")).rejects.toThrow();
    const manager = await jetstreamManager(client.connection);
    expect((await manager.streams.info(STREAM)).state.messages).toBe(500);
  });
});

/** Random events, the same for a seed; each type has from `minTokens` to `maxTokens` tokens. */
function sample(count: number, minTokens: number, maxTokens: number): KeyedEvent[] {
  const seed = Math.floor(Math.random() * 2 ** 31);
  console.log(`seed of the sample of ${count} events: ${seed}`);
  const type = fc
    .array(typeToken, { minLength: minTokens, maxLength: maxTokens })
    .map((tokens) => tokens.join("."));
  return fc.sample(fc.record({ key, type }), { numRuns: count, seed });
}

/** Publishes the events as the layout's publisher would, each with its number, and expects each to be stored under its lane subject. */
async function publishAndCompare(
  connection: NatsConnection,
  layout: LaneLayout,
  events: readonly KeyedEvent[],
): Promise<void> {
  const client = jetstream(connection, { timeout: DEADLINE_MS });
  for (let from = 0; from < events.length; from += IN_FLIGHT) {
    const batch = events.slice(from, from + IN_FLIGHT);
    await Promise.all(
      batch.map((event, i) => client.publish(publishSubject(layout, event), String(from + i))),
    );
  }
  const stored = await storedSubjects(connection, events.length);
  const differences = events.flatMap((event, number) => {
    const expected = laneSubject(layout, event);
    return stored.get(number) === expected ? [] : [{ event, expected, stored: stored.get(number) }];
  });
  expect(differences).toEqual([]);
  for (const [number, event] of events.entries()) {
    const lane = laneOf(event.key, layout.lanes, layout.hash);
    expect(parseLaneSubject(layout, stored.get(number) ?? "")).toEqual({ lane, ...event });
  }
}

function publishSubject(layout: LaneLayout, event: KeyedEvent): string {
  return layout.mapping === "publisher" ? laneSubject(layout, event) : intakeSubject(layout, event);
}

/** The subjects the server stored, by the number in the payload. */
async function storedSubjects(connection: NatsConnection, count: number): Promise<Map<number, string>> {
  const consumer = await jetstream(connection).consumers.get(STREAM);
  const subjects = new Map<number, string>();
  const messages = await consumer.fetch({ max_messages: count, expires: DEADLINE_MS });
  for await (const message of messages) {
    subjects.set(Number(message.string()), message.subject);
    if (subjects.size === count) break;
  }
  return subjects;
}

/** The server's own count of each lane, by the lane's filter, is what laneShares says. */
async function expectLaneCounts(
  connection: NatsConnection,
  layout: LaneLayout,
  events: readonly KeyedEvent[],
): Promise<void> {
  const manager = await jetstreamManager(connection);
  const counts: number[] = [];
  for (let lane = 0; lane < layout.lanes; lane++) {
    const consumer = await manager.consumers.add(STREAM, {
      durable_name: `lane-${lane}`,
      ack_policy: AckPolicy.Explicit,
      filter_subject: laneFilter(layout, lane),
    });
    counts.push(consumer.num_pending);
  }
  const shares = laneShares(
    events.map((event) => event.key),
    layout.lanes,
    layout.hash,
  );
  expect(counts).toEqual(shares.perLane.map((lane) => lane.events));
}

async function addStream(connection: NatsConnection, layout: LaneLayout): Promise<void> {
  const manager = await jetstreamManager(connection, { timeout: DEADLINE_MS });
  const { subjects, transform, metadata } = layoutConfig(layout);
  const transforming = layout.mapping === "stream" && transform ? { subject_transform: transform } : {};
  await manager.streams.add({ name: STREAM, subjects, metadata, ...transforming });
}

function mappingsBlock(layout: LaneLayout): string {
  const { transform } = layoutConfig(layout);
  return `mappings { ${JSON.stringify(transform?.src)}: ${JSON.stringify(transform?.dest)} }`;
}

async function connected(url: string): Promise<AsyncDisposable & { connection: NatsConnection }> {
  const connection = await connect({ servers: url });
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}
