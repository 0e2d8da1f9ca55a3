import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLanes } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { startNatsProxy } from "./harness/nats-proxy.js";

test("the JetStream of another account, imported under a prefix: publishing, pulling, acking and groups work", async () => {
  await using server = await startTestServer({
    config: `accounts {
      owner {
        jetstream: enabled, users: [{ user: owner, password: x }]
        exports: [{ service: "$JS.API.>", response_type: stream }, { service: "$JS.ACK.>" }, { service: "orders.>" }]
      }
      guest {
        users: [{ user: guest, password: x }]
        imports: [
          { service: { account: owner, subject: "$JS.API.>" }, to: "OWNER.API.>" }
          { service: { account: owner, subject: "$JS.ACK.>" } }
          { service: { account: owner, subject: "orders.>" } }
        ]
      }
    }`,
    connect: { user: "owner", pass: "x" },
  });
  const guest = await connect({ servers: server.url, user: "guest", pass: "x" });
  const jetstream = { apiPrefix: "OWNER.API" };
  const create = { subject: "orders", lanes: 2 };
  const lanes = await openLanes(guest, { stream: "ORDERS", jetstream, create });
  const seen: string[] = [];
  const worker = await lanes.work({ group: "g", assignment: "shared" }, ({ key }) => void seen.push(key));
  const publisher = lanes.publisher();
  for (const key of ["a", "b", "c", "a"]) await publisher.publish({ key, type: "t", data: 1 });
  await awaitCondition(() => seen.length === 4, { what: "all events" });
  await lanes.group("g").caughtUp({ signal: AbortSignal.timeout(10_000) });
  expect(await lanes.group("g").status()).toMatchObject({ pending: 0, inFlight: 0 });
  expect(worker.status().healthy).toBe(true);
  await lanes.close();
  await guest.close();
});

test.each([
  ["a domain", { domain: "hub" }],
  ["an API prefix", { apiPrefix: "$JS.hub.API" }],
] as const)("%s is honoured by opening, publishing, pulling, acking and groups", async (_, jetstream) => {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-hub-"));
  await using own = await startTestServer({
    config: `jetstream { domain: hub, store_dir: "${folder}" }`,
  });
  await using proxy = await startNatsProxy(own.url);
  const client = await connect({ servers: proxy.url });
  const plain = proxy.intercept({
    direction: "to-server",
    match: ({ subject }) => subject.startsWith("$JS.API."),
    action: "watch",
  });
  const lanes = await openLanes(client, {
    stream: "ORDERS",
    jetstream,
    create: { subject: "orders", lanes: 2 },
  });
  const seen: string[] = [];
  const worker = await lanes.work({ group: "g", assignment: "shared" }, ({ key }) => void seen.push(key));
  const publisher = lanes.publisher();
  for (const key of ["a", "b", "c", "a"]) await publisher.publish({ key, type: "t", data: 1 });
  await awaitCondition(() => seen.length === 4, { what: "all events" });
  await lanes.group("g").caughtUp({ signal: AbortSignal.timeout(10_000) });
  expect(await lanes.groups()).toEqual(["g"]);
  await worker.close();
  expect(await lanes.group("g").status()).toMatchObject({ pending: 0, inFlight: 0 });
  await lanes.group("g").rewind("all");
  await lanes.group("g").delete();
  expect(plain.frames.map(({ subject }) => subject)).toEqual([]);
  await lanes.close();
  await client.close();
  await own.kill();
  rmSync(folder, { recursive: true, force: true });
});
