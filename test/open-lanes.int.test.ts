import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type CreateLanes, LanekeeperError, openLanes } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { layoutConfig } from "@lanekeeper/partitioner";
import { type JetStreamManager, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { within } from "./harness/await-condition.js";
import { startNatsProxy } from "./harness/nats-proxy.js";

let server: TestServer;
let connection: NatsConnection;
let manager: JetStreamManager;
let names = 0;
beforeAll(async () => {
  server = await startTestServer();
  connection = await connect({ servers: server.url });
  manager = await jetstreamManager(connection);
});
afterAll(async () => {
  await connection.close();
  await server[Symbol.asyncDispose]();
});

/** A stream name and subject that no other test has. */
function fresh(): { stream: string; subject: string } {
  const number = ++names;
  return { stream: `OPEN-${number}`, subject: `open${number}` };
}

async function failure(work: Promise<unknown>): Promise<LanekeeperError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!LanekeeperError.is(error)) throw new Error(`expected a LanekeeperError, not ${String(error)}`);
  return error;
}

const second = 1_000_000_000;

test("without create nothing is made: STREAM_NOT_FOUND, and LAYOUT_MISSING on a stream that has no layout", async () => {
  const { stream, subject } = fresh();
  expect((await failure(openLanes(connection, { stream }))).code).toBe("STREAM_NOT_FOUND");
  await manager.streams.add({ name: stream, subjects: [`elsewhere.${subject}`] });
  const before = (await manager.streams.info(stream)).config;
  expect((await failure(openLanes(connection, { stream }))).code).toBe("LAYOUT_MISSING");
  expect((await manager.streams.info(stream)).config).toEqual(before);
});

test("create makes the stream with layout, subjects and metadata, and guards single events against deletion", async () => {
  const { stream, subject } = fresh();
  const streamConfig = { max_age: 3_600 * second, metadata: { owner: "shop" }, max_msg_size: 1_000 };
  const create: CreateLanes = { subject, lanes: 3, streamConfig };
  await using lanes = await openLanes(connection, { stream, create });
  expect(lanes.layout).toEqual({ subject, lanes: 3, generation: 1, hash: "murmur3", mapping: "publisher" });
  const { config } = await manager.streams.info(stream);
  const wanted = layoutConfig(lanes.layout);
  expect(config).toMatchObject({ subjects: wanted.subjects, deny_delete: true, max_age: 3_600 * second });
  expect(config.metadata).toMatchObject({ ...wanted.metadata, owner: "shop" });
});

test("an existing layout wins over every other create option, and creators at once agree on one", async () => {
  const { stream, subject } = fresh();
  const opened = await Promise.all(
    Array.from({ length: 8 }, async (_, n) => {
      const own = await connect({ servers: server.url });
      const lanes = await openLanes(own, { stream, create: { subject: `${subject}-${n}`, lanes: n + 1 } });
      await lanes.close();
      await own.close();
      return lanes.layout;
    }),
  );
  expect(new Set(opened.map((layout) => JSON.stringify(layout))).size).toBe(1);
  const other: CreateLanes = { subject: "other", lanes: 999, hash: "murmur2" };
  await using later = await openLanes(connection, { stream, create: other });
  expect(later.layout).toEqual(opened[0]);
});

const unsafe: [keyof StreamConfig, Partial<StreamConfig>][] = [
  ["max_msgs", { max_msgs: 10 }],
  ["max_bytes", { max_bytes: 10_000 }],
  ["max_msgs_per_subject", { max_msgs_per_subject: 1 }],
  ["allow_rollup_hdrs", { allow_rollup_hdrs: true }],
  ["no_ack", { no_ack: true }],
];

test("R12, O4: every unsafe setting is refused at create, all at once, each with its reason; nothing is made", async () => {
  const { stream, subject } = fresh();
  const streamConfig = {
    ...Object.assign({}, ...unsafe.map(([, config]) => config)),
    allow_msg_ttl: true,
    subject_delete_marker_ttl: second,
    allow_msg_counter: true,
    persist_mode: "async",
    mirror: { name: "X" },
    sources: [{ name: "Y" }],
    consumer_limits: { inactive_threshold: second },
    max_consumers: 3,
  } as Partial<StreamConfig>;
  const error = await failure(openLanes(connection, { stream, create: { subject, lanes: 4, streamConfig } }));
  expect(error.code).toBe("INVALID_OPTIONS");
  for (const name of Object.keys(streamConfig)) expect(error.message).toContain(name);
  expect((await failure(openLanes(connection, { stream }))).code).toBe("STREAM_NOT_FOUND");
});

test("R12, O4: existing streams with unsafe settings or foreign subjects are refused, with every reason, and left as they are", async () => {
  const { stream, subject } = fresh();
  const config = Object.assign({}, ...unsafe.map(([, one]) => one), { max_consumers: 3 });
  await manager.streams.add({ name: stream, subjects: [`${subject}.>`], ...config });
  const before = (await manager.streams.info(stream)).config;
  const create = { subject, lanes: 4 };
  const error = await failure(openLanes(connection, { stream, create }));
  expect(error.code).toBe("UNSAFE_STREAM");
  for (const name of [...Object.keys(config), `${subject}.>`]) expect(error.message).toContain(name);
  expect((await manager.streams.info(stream)).config).toEqual(before);
});

test.each(unsafe)(
  "O4: a stream with a layout that was changed to %s is refused at open",
  async (name, change) => {
    const { stream, subject } = fresh();
    await (await openLanes(connection, { stream, create: { subject, lanes: 2 } })).close();
    await manager.streams.update(stream, change);
    const error = await failure(openLanes(connection, { stream, create: { subject } }));
    expect(error.code).toBe("UNSAFE_STREAM");
    expect(error.message).toContain(name);
  },
);

test.each(["publisher", "stream", "account"] as const)(
  "a stream without a layout gets one of mapping %s in one update, keeps its own subjects, and can be worked on",
  async (mapping) => {
    const { stream, subject } = fresh();
    await manager.streams.add({
      name: stream,
      subjects: mapping === "stream" ? [] : [`audit.${subject}`],
      metadata: { owner: "me" },
      ...(mapping === "stream" ? { subjects: [`in.${subject}.*.*`] } : {}),
    });
    await using proxy = await startNatsProxy(server.url);
    const own = await connect({ servers: proxy.url });
    const updates = proxy.intercept({
      direction: "to-server",
      match: ({ subject: to }) => to.startsWith("$JS.API.STREAM.UPDATE."),
      action: "watch",
    });
    const lanes = await openLanes(own, { stream, create: { subject, lanes: 2, mapping } });
    expect(updates.frames).toHaveLength(1);
    const { config } = await manager.streams.info(stream);
    const wanted = layoutConfig(lanes.layout);
    expect(config.subjects).toEqual(expect.arrayContaining(wanted.subjects));
    expect(config.metadata).toMatchObject({ ...wanted.metadata, owner: "me" });
    expect(config.subject_transform).toEqual(mapping === "stream" ? wanted.transform : undefined);
    const worker = await lanes.work({ group: "g", assignment: "shared" }, () => {});
    expect(worker.status().healthy).toBe(true);
    await lanes.close();
    await own.close();
  },
);

test("bad options are refused all at once, before anything is sent", async () => {
  const options = {
    stream: "a.b",
    unknown: 1,
    onNotification: "x",
    jetstream: { domain: "a", apiPrefix: "b" },
    create: {
      subject: "a b",
      lanes: 0,
      hash: "md5",
      mapping: "magic",
      streamConfig: { name: "X", metadata: { "lanekeeper.lanes": "3" } },
    },
  };
  const error = await failure(openLanes(connection, options as never));
  expect(error.code).toBe("INVALID_OPTIONS");
  for (const part of [
    "a.b",
    "unknown",
    "onNotification",
    "domain",
    "subject",
    "lanes",
    "hash",
    "mapping",
    "streamConfig.name",
    "lanekeeper.lanes",
  ]) {
    expect(error.message).toContain(part);
  }
  expect((await failure(openLanes(connection, undefined as never))).code).toBe("INVALID_OPTIONS");
  expect((await failure(openLanes(connection, { stream: "S", create: null as never }))).code).toBe(
    "INVALID_OPTIONS",
  );
});

test("a closed connection is a typed error", async () => {
  const own = await connect({ servers: server.url });
  await own.close();
  expect((await failure(openLanes(own, { stream: "S" }))).code).toBe("CONNECTION_CLOSED");
});

test("a server older than 2.10 is refused with its version named, before anything is asked of it", async () => {
  const asked: string[] = [];
  const standIn = createServer((socket) => {
    socket.on("error", () => {});
    socket.write(
      `INFO ${JSON.stringify({ server_id: "X", version: "2.9.25", headers: true, proto: 1, max_payload: 1e6 })}\r\n`,
    );
    socket.on("data", (data) => {
      for (const line of data.toString().split("\r\n")) {
        if (line === "PING") socket.write("PONG\r\n");
        else if (line.startsWith("PUB") || line.startsWith("HPUB")) asked.push(line);
      }
    });
  });
  standIn.listen(0, "127.0.0.1");
  await once(standIn, "listening");
  const own = await connect({ servers: `127.0.0.1:${(standIn.address() as AddressInfo).port}` });
  try {
    const error = await failure(openLanes(own, { stream: "S", create: { subject: "s" } }));
    expect(error.code).toBe("SERVER_TOO_OLD");
    expect(error.message).toContain("2.9.25");
    expect(asked).toEqual([]);
  } finally {
    await own.close();
    standIn.close();
  }
});

test("without JetStream the error is JETSTREAM_UNAVAILABLE, at once", async () => {
  await using own = await startTestServer({
    config:
      "accounts { plain { users: [{ user: p, password: p }] }, js { jetstream: enabled, users: [{ user: j, password: j }] } }",
    connect: { user: "j", pass: "j" },
  });
  const plain = await connect({ servers: own.url, user: "p", pass: "p" });
  const error = await failure(
    within(openLanes(plain, { stream: "S", create: { subject: "s" } }), 12_000, "it"),
  );
  expect(error.code).toBe("JETSTREAM_UNAVAILABLE");
  await plain.close();
});
