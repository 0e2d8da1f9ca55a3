import { setTimeout as sleep } from "node:timers/promises";
import { type Notification, openLanes } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { type JsMsg, jetstream } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { ackVerbOf } from "./harness/jetstream-frames.js";
import { startNatsProxy } from "./harness/nats-proxy.js";
import { gate } from "./work-scene.js";

const CONSUMER = "lk-g-g1-0";
/** Longer than the test, so that nothing comes again by itself. */
const ACK_WAIT_MS = 300_000;
/** The event whose handler runs when the server is killed. */
const IN_HAND = 2;

/**
 * One shared worker with one lane behind a proxy, and three events of one key. The first one's handler ends soon, the
 * others hang until `hold` opens; resolves when the second one has begun.
 */
async function startScene(firstMs = 500) {
  const server = await startTestServer();
  const proxy = await startNatsProxy(server.url);
  const client = await connect({ servers: proxy.url, reconnectTimeWait: 50, maxReconnectAttempts: -1 });
  const told: Notification[] = [];
  const lanes = await openLanes(client, {
    stream: "ORDERS",
    create: { subject: "orders", lanes: 1 },
    onNotification: (notification) => void told.push(notification),
  });
  const publisher = lanes.publisher();
  for (const data of [1, 2, 3]) await publisher.publish({ key: "k", type: "t", data });
  await publisher.close();
  const started: number[] = [];
  const hold = gate();
  const begun = gate();
  await lanes.work({ group: "g", assignment: "shared", ackWaitMs: ACK_WAIT_MS }, async ({ seq }) => {
    started.push(seq);
    // Its ack is then written at once, and the next delivery a tenth of a second later.
    if (seq < IN_HAND) return void (await sleep(firstMs));
    begun.open();
    await hold.opened;
  });
  const acks = proxy.intercept({
    direction: "to-server",
    match: (frame) => ackVerbOf(frame) === "+ACK",
    action: "watch",
  });
  await begun.opened;
  return {
    server,
    proxy,
    client,
    told,
    started,
    hold,
    acks,
    tells: (type: Notification["type"]) => told.some((one) => one.type === type && one.seq === IN_HAND),
    startsNext: () =>
      awaitCondition(() => started.includes(IN_HAND + 1), { what: "the next event", timeoutMs: 60_000 }),
    async [Symbol.asyncDispose]() {
      hold.open();
      await client.close();
      await proxy[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** The lane's next event, for another reader of the same consumer; undefined when it has none to give. */
async function take(connection: NatsConnection): Promise<JsMsg | undefined> {
  const consumer = await jetstream(connection).consumers.get("ORDERS", CONSUMER);
  return (await consumer.next({ expires: 2_000 })) ?? undefined;
}

test("O2: what a killed server has forgotten and given to another is not acked: the lane's next event waits for the other", {
  timeout: 240_000,
}, async () => {
  // The server writes ten times a second: killed right after a delivery that followed an ack, it has forgotten it.
  for (let attempt = 1; ; attempt++) {
    expect(attempt, "a server that never forgets").toBeLessThan(30);
    await using scene = await startScene(300 + 37 * attempt);
    const { server, proxy, client, started, hold, acks } = scene;
    const acked = acks.frames.length;
    proxy.refuse();
    await server.kill();
    await server.restart();
    const other = await connect({ servers: server.url });
    const taken = await take(other);
    proxy.admit();
    // One that has not written anything yet has forgotten the event before, too.
    const forgotten = taken?.seq === IN_HAND;
    if (forgotten) {
      await awaitCondition(() => scene.tells("fenced"), {
        what: "the handler to be fenced",
        timeoutMs: 60_000,
      });
      expect(scene.tells("overlap-possible")).toBe(true);
      hold.open();
      await sleep(50);
      await client.flush();
      expect(acks.frames.length).toBe(acked);
      expect(started).toEqual([1, IN_HAND]);
      taken.ack();
      await scene.startsNext();
    }
    await other.close();
    if (forgotten) return;
  }
});

test("a lane whose event the killed server remembers, or gives to the same worker again, goes on without waiting for ackWait", {
  timeout: 120_000,
}, async () => {
  await using scene = await startScene();
  // Long enough for the server to have written it.
  await sleep(1_500);
  await scene.server.kill();
  await scene.server.restart();
  scene.hold.open();
  await scene.startsNext();
  expect(scene.started).toEqual([1, IN_HAND, IN_HAND + 1]);
});
