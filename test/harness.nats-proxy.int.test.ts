import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { ackVerbOf, deliveryOf, isPubAck, pubAckOf } from "./harness/jetstream-frames.js";
import type { NatsFrame } from "./harness/nats-frame.js";
import { type NatsProxy, startNatsProxy } from "./harness/nats-proxy.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await using direct = await open(server.url);
  const manager = await jetstreamManager(direct.connection);
  await manager.streams.add({ name: "ORDERS", subjects: ["orders.>"] });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

test("everything passes both ways, and what is watched is remembered", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url, "watched");
  const seen = proxy.intercept({
    direction: "to-server",
    match: (frame, from) => frame.subject === "echo" && from.clientName === "watched",
    action: "watch",
  });
  const big = "x".repeat(700_000);
  expect(await echo(client.connection, big)).toBe(big);
  expect(seen.frames.map((frame) => frame.payload.length)).toEqual([700_000]);
  expect(proxy.connections).toBe(1);
});

test("a single PubAck is dropped: the publish times out though the event is stored once", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  const publisher = jetstream(client.connection);
  const lost = proxy.intercept({
    direction: "to-client",
    match: isPubAck,
    action: "drop",
    skip: 1,
    times: 1,
  });
  const first = await publisher.publish("orders.drop", "1");
  await expect(publisher.publish("orders.drop", "2", { msgID: "two", timeout: 300 })).rejects.toThrow();
  const again = await publisher.publish("orders.drop", "2", { msgID: "two" });
  expect(again).toMatchObject({ seq: first.seq + 1, duplicate: true });
  expect(lost.frames).toHaveLength(1);
  expect(lost.frames.map(pubAckOf)).toEqual([{ stream: "ORDERS", seq: first.seq + 1, duplicate: false }]);
});

test("a single +ACK is held back and goes on when it is released", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  const manager = await jetstreamManager(client.connection);
  await jetstream(client.connection).publish("orders.held", "1");
  await manager.consumers.add("ORDERS", {
    durable_name: "held",
    ack_policy: "explicit",
    filter_subject: "orders.held",
  });
  const delivered = proxy.intercept({
    direction: "to-client",
    match: (frame) => deliveryOf(frame)?.consumer === "held",
    action: "watch",
  });
  const held = proxy.intercept({
    direction: "to-server",
    match: (frame) => ackVerbOf(frame) === "+ACK",
    action: "hold",
  });
  const message = await (await jetstream(client.connection).consumers.get("ORDERS", "held")).next();
  message?.ack();
  await held.acted(1);
  expect(delivered.frames.map(deliveryOf)).toMatchObject([
    { stream: "ORDERS", deliveries: 1, deliverySeq: 1 },
  ]);
  expect((await manager.consumers.info("ORDERS", "held")).num_ack_pending).toBe(1);
  held.remove();
  await awaitCondition(async () => (await manager.consumers.info("ORDERS", "held")).num_ack_pending === 0, {
    what: "the released ack to arrive",
  });
});

test("watching rules and observers see what another rule drops", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  const isLost = (frame: NatsFrame): boolean => frame.op === "PUB" && frame.subject === "lost";
  const observed: string[] = [];
  using _observing = proxy.observe((direction, frame) => {
    if (isLost(frame)) observed.push(`${direction} ${frame.payload}`);
  });
  const before = proxy.intercept({ direction: "to-server", match: isLost, action: "watch" });
  const lost = proxy.intercept({ direction: "to-server", match: isLost, action: "drop" });
  const after = proxy.intercept({ direction: "to-server", match: isLost, action: "watch" });
  const subscription = client.connection.subscribe("lost");
  client.connection.publish("lost", "x");
  await client.connection.flush();
  await client.connection.flush();
  expect([before, lost, after].map((each) => each.frames.length)).toEqual([1, 1, 1]);
  expect(observed).toEqual(["to-server x"]);
  expect(subscription.getProcessed()).toBe(0);
});

test("a delayed direction delivers everything later and in order", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  proxy.delay("to-client", 200);
  const subscription = client.connection.subscribe("tick", { max: 3 });
  await client.connection.flush();
  const startedAt = performance.now();
  for (const body of ["a", "b", "c"]) client.connection.publish("tick", body);
  const seen: string[] = [];
  for await (const message of subscription) seen.push(message.string());
  expect(seen).toEqual(["a", "b", "c"]);
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(195);
  proxy.delay("to-client", 0);
});

test("one delayed command is overtaken by what follows it", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  proxy.intercept({
    direction: "to-server",
    match: (frame) => frame.payload.toString() === "late",
    action: { delayMs: 200 },
  });
  const subscription = client.connection.subscribe("race", { max: 2 });
  for (const body of ["late", "early"]) client.connection.publish("race", body);
  const seen: string[] = [];
  for await (const message of subscription) seen.push(message.string());
  expect(seen).toEqual(["early", "late"]);
});

test("a paused direction is silent and loses nothing", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  proxy.pause("to-client");
  const answer = echo(client.connection, "later");
  expect(await Promise.race([answer, silence(300)])).toBe("silence");
  proxy.resume("to-client");
  expect(await answer).toBe("later");
});

test("a black hole swallows open and new connections alike until it is restored", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  proxy.blackhole();
  const answer = echo(client.connection, "through");
  await expect(connect({ servers: proxy.url, reconnect: false, timeout: 300 })).rejects.toThrow();
  expect(await Promise.race([answer, silence(100)])).toBe("silence");
  proxy.restore();
  expect(await answer).toBe("through");
});

test("a cut resets every client, which comes back by itself", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  const before = proxy.accepted;
  proxy.cut();
  await awaitCondition(() => proxy.accepted > before, { what: "the client to come back" });
  expect(await echo(client.connection, "again")).toBe("again");
});

test("while it refuses, open connections go on and new ones are reset", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  proxy.refuse();
  await expect(connect({ servers: proxy.url, reconnect: false, timeout: 1_000 })).rejects.toThrow();
  expect(await echo(client.connection, "still")).toBe("still");
  proxy.admit();
  await using second = await open(proxy.url);
  expect(await echo(second.connection, "new")).toBe("new");
});

test("a rule can cut the connection a command came on", async () => {
  await using proxy = await startNatsProxy(server.url);
  await using client = await open(proxy.url);
  proxy.intercept({
    direction: "to-server",
    match: (frame) => frame.subject === "poison",
    action: "cut",
    times: 1,
  });
  client.connection.publish("poison");
  await awaitCondition(() => proxy.accepted === 2, { what: "the client to come back" });
  expect(await echo(client.connection, "after")).toBe("after");
});

test("clients behind it do not learn the cluster's own addresses", { timeout: 180_000 }, async () => {
  await using cluster = await startTestServer({ nodes: 3 });
  await using proxy = await startNatsProxy(cluster.url);
  await using direct = await open(cluster.url);
  await using behind = await open(proxy.url);
  await awaitCondition(() => (direct.connection.info?.connect_urls?.length ?? 0) > 1, {
    what: "the server to advertise its cluster",
  });
  expect(behind.connection.info?.connect_urls).toBeUndefined();
});

test("a server that is gone resets its clients, and disposing ends all that is left", async () => {
  await using own = await startTestServer();
  const proxy: NatsProxy = await startNatsProxy(own.url);
  const client = await connect({ servers: proxy.url, reconnect: false });
  const closed = client.closed();
  await own.kill();
  await closed;
  await awaitCondition(() => proxy.connections === 0, { what: "the proxy to notice" });
  await expect(connect({ servers: proxy.url, reconnect: false })).rejects.toThrow();
  await proxy[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await expect(connect({ servers: proxy.url, reconnect: false })).rejects.toThrow();
});

async function open(url: string, name?: string): Promise<AsyncDisposable & { connection: NatsConnection }> {
  const connection = await connect({
    servers: url,
    reconnectTimeWait: 20,
    maxReconnectAttempts: -1,
    ...(name === undefined ? {} : { name }),
  });
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}

async function echo(connection: NatsConnection, body: string): Promise<string> {
  const subscription = connection.subscribe("echo", { max: 1 });
  await connection.flush();
  connection.publish("echo", body);
  for await (const message of subscription) return message.string();
  throw new Error("the connection closed before the echo came");
}

function silence(ms: number): Promise<string> {
  return new Promise((resolve) => setTimeout(resolve, ms, "silence"));
}
