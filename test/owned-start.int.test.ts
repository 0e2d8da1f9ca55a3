import { openLanes } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition, within } from "./harness/await-condition.js";
import { startNatsProxy } from "./harness/nats-proxy.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

test("O4: a worker closed while it starts leaves no member behind: the others have all lanes", {
  timeout: 120_000,
}, async () => {
  const client = await connect({ servers: server.url });
  const lanes = await openLanes(client, { stream: "CLOSED", create: { subject: "closed", lanes: 8 } });
  for (const delayMs of [0, 1, 3, 8, 20]) {
    const signal = delayMs === 0 ? AbortSignal.abort() : AbortSignal.timeout(delayMs);
    const worker = await lanes.work({ group: "g", signal }, () => {});
    expect(await worker.closed).toEqual({ type: "closed" });
  }
  const stays = await lanes.work({ group: "g", leaseMs: 2_000 }, () => {});
  await awaitCondition(() => stays.lanes().length === 8, { what: "all lanes", timeoutMs: 30_000 });
  const manager = await jetstreamManager(client);
  const filter = { subjects_filter: "$KV.lanekeeper_CLOSED.g.member.>" };
  const members = async () =>
    Object.keys((await manager.streams.info("KV_lanekeeper_CLOSED", filter)).state.subjects ?? {});
  await awaitCondition(async () => (await members()).length === 1, {
    what: "one member's record",
    timeoutMs: 30_000,
  });
  await lanes.close();
  await client.close();
});

test("lanes that are closed wait no longer for a worker's start that nobody answers: work() rejects with CLOSED", async () => {
  await using proxy = await startNatsProxy(server.url);
  const client = await connect({ servers: proxy.url });
  const lanes = await openLanes(client, {
    stream: "SILENT",
    create: { subject: "silent", lanes: 2 },
    jetstream: { timeout: 500 },
  });
  const lost = proxy.intercept({
    direction: "to-server",
    match: ({ subject }) => subject.startsWith("$JS.API."),
    action: "drop",
  });
  const starting = lanes.work({ group: "g" }, () => {}).catch((error: unknown) => error);
  await lost.acted(1);
  await within(lanes.close(), 12_000, "close");
  expect(await starting).toMatchObject({ code: "CLOSED" });
  await client.close();
});
