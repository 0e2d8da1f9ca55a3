import { openLanes } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { encodeKey, laneOf, layoutConfig, type Mapping } from "@lanekeeper/partitioner";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { connect as connectMqtt } from "mqtt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";

const intake = "sensors.*.{key}.*";
const layoutOf = (subject: string, mapping: Mapping) => ({
  subject,
  generation: 1,
  lanes: 4,
  hash: "fnv1a" as const,
  mapping,
  intake,
});
/** Every mapping has an account of its own, as the intake is the same. */
const accounts = ["publisher", "stream", "account"] as const;
let server: TestServer;

beforeAll(async () => {
  const { src, dest } = layoutConfig(layoutOf("readings", "account")).transform ?? { src: "", dest: "" };
  const defaults = layoutConfig({ ...layoutOf("orders", "account"), intake: "in.orders.{key}.*" }).transform;
  server = await startTestServer({
    config: ({ port }) => `
      mqtt { listen: "127.0.0.1:${port("mqtt")}" }
      accounts {
        ${accounts
          .map(
            (name) => `${name} {
          jetstream: enabled
          users: [{ user: ${name}, password: ${name} }]
          ${name === "account" ? `mappings: { ${JSON.stringify(src)}: ${JSON.stringify(dest)}, ${JSON.stringify(defaults?.src)}: ${JSON.stringify(defaults?.dest)} }` : ""}
        }`,
          )
          .join("\n")}
      }`,
    connect: { user: "publisher", pass: "publisher" },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

interface Seen {
  key: string;
  type: string;
  lane: number;
  subject: string;
  text: string;
}

async function collect(mapping: Mapping, stream: string, subject: string, pattern?: string) {
  const connection = await connect({ servers: server.url, user: mapping, pass: mapping });
  const create = { subject, lanes: 4, mapping, ...(pattern === undefined ? {} : { intake: pattern }) };
  const lanes = await openLanes(connection, { stream, create });
  const seen: Seen[] = [];
  const misrouted: string[] = [];
  await lanes.work(
    {
      group: "g",
      assignment: "shared",
      onNotification: ({ type, error }) => {
        if (type === "misrouted") misrouted.push(error?.message ?? "");
      },
    },
    ({ key, type, lane, subject: stored, bytes }) => {
      seen.push({ key, type, lane, subject: stored, text: Buffer.from(bytes).toString() });
    },
  );
  return {
    connection,
    lanes,
    seen,
    misrouted,
    async [Symbol.asyncDispose]() {
      await lanes.close();
      await connection.close();
    },
  };
}

async function count(seen: Seen[], wanted: number): Promise<void> {
  await awaitCondition(() => seen.length >= wanted, {
    what: () => `${wanted} events (so far ${seen.length})`,
  });
}

/** Publishes as anybody does who knows nothing of lanes. */
function plainPublish(
  connection: NatsConnection,
  site: string,
  device: string,
  metric: string,
  value: number,
) {
  return connection.request(`sensors.${site}.${device}.${metric}`, String(value), { timeout: 5_000 });
}

const keys = ["dev-1", "dev-2", "é", "日本", "a b", "x.y", "50%", "*"];

test.each(["stream", "account"] as const)(
  "R01, R02, O1: mapping %s puts a plain publisher's events of an intake pattern into the keys' lanes, in order",
  async (mapping) => {
    await using scene = await collect(mapping, "READINGS", "readings", intake);
    expect(scene.lanes.layout).toEqual(layoutOf("readings", mapping));
    for (let n = 0; n < 3; n++) {
      for (const key of keys) await plainPublish(scene.connection, "north", encodeKey(key), "temp", n);
    }
    await count(scene.seen, 3 * keys.length);
    expect(scene.misrouted).toEqual([]);
    for (const key of keys) {
      const ofKey = scene.seen.filter((event) => event.key === key);
      expect(ofKey.map(({ text }) => text)).toEqual(["0", "1", "2"]);
      for (const event of ofKey) {
        expect(event).toMatchObject({ type: "north.temp", lane: laneOf(key, 4, "fnv1a") });
      }
    }
  },
);

test.each(["stream", "account"] as const)(
  "mapping %s: Lanekeeper's own publisher goes through the intake, with receipts that name the lane",
  async (mapping) => {
    await using scene = await collect(mapping, "ORDERS", "orders");
    const publisher = scene.lanes.publisher();
    for (const key of keys) {
      const receipt = await publisher.publish({ key, type: "created", data: key });
      expect(receipt).toMatchObject({ lane: laneOf(key, 4, "fnv1a"), duplicate: false });
    }
    await count(scene.seen, keys.length);
    expect(new Set(scene.seen.map(({ key }) => key))).toEqual(new Set(keys));
    // The intake has one token for the type.
    await expect(publisher.publish({ key: "K", type: "a.b", data: 1 })).rejects.toMatchObject({
      code: "INVALID_TYPE",
    });
    expect(scene.misrouted).toEqual([]);
  },
);

test("mapping publisher: nobody can store an event that has no lane", async () => {
  await using scene = await collect("publisher", "PLAIN", "plain");
  const { connection } = scene;
  for (const subject of ["plain.K.created", "plain.4.K.created", "plain.0.K", "plain.created"]) {
    await expect(connection.request(subject, "1", { timeout: 2_000 })).rejects.toThrow();
  }
});

test("mapping stream: an event cannot be stored past the transform", async () => {
  await using scene = await collect("stream", "PAST", "past");
  await expect(scene.connection.request("past.0.K.created", "1", { timeout: 2_000 })).rejects.toThrow();
});

test.each(["stream", "account"] as const)(
  "mapping %s takes MQTT publishers of the server's gateway as they are",
  async (mapping) => {
    await using scene = await collect(mapping, "READINGS", "readings", intake);
    await scene.lanes.group("g").caughtUp({ signal: AbortSignal.timeout(10_000) });
    scene.seen.length = 0;
    const client = connectMqtt(`mqtt://127.0.0.1:${server.port("mqtt")}`, {
      username: mapping,
      password: mapping,
      clientId: `device-${mapping}`,
      connectTimeout: 10_000,
    });
    // It connects again by itself; an error that nobody hears would end the process.
    client.on("error", () => {});
    try {
      for (let n = 0; n < 4; n++) {
        for (const device of ["m-1", "m-2"]) {
          await client.publishAsync(`sensors/south/${device}/hum`, String(n), { qos: n % 2 === 0 ? 1 : 0 });
        }
      }
      await count(scene.seen, 8);
    } finally {
      await client.endAsync();
    }
    for (const device of ["m-1", "m-2"]) {
      const ofKey = scene.seen.filter(({ key }) => key === device);
      expect(ofKey.map(({ text }) => text)).toEqual(["0", "1", "2", "3"]);
      expect(ofKey[0]).toMatchObject({ type: "south.hum", lane: laneOf(device, 4, "fnv1a") });
    }
    expect(scene.misrouted).toEqual([]);
  },
);
