import { errors, type NatsConnection } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import type { ConnectionPort } from "../runtime/connection-port.js";
import type { Delivery } from "../runtime/lane-feed-port.js";
import { VirtualClock } from "../runtime/virtual-clock.test-support.js";
import type { JetStreamApi } from "./jetstream-api.js";
import { laneFeedAdapter } from "./lane-feed-adapter.js";

test("a connection that its owner drains takes no answers: none of them throws where nobody could catch it", async () => {
  const tried: string[] = [];
  const connection = {
    isClosed: () => false,
    options: {},
    subscribe: () => ({ isClosed: () => false, unsubscribe() {}, drain: async () => {} }),
    publish(subject: string) {
      tried.push(subject);
      throw new errors.DrainingConnectionError();
    },
  } as unknown as NatsConnection;
  const port = { isConnected: () => true, observe: () => () => {} } as unknown as ConnectionPort;
  const api = { prefix: "$JS.API", timeoutMs: 5_000 } as JetStreamApi;
  const clock = new VirtualClock();
  const observer = { delivered() {}, trouble() {}, recovered() {}, denied() {} };
  const feed = laneFeedAdapter(connection, port, api, "S", clock)(observer);
  const delivery = { seq: 1, reply: "$JS.ACK.S.c.1.1.1.1.0" } as Delivery;

  feed.add("c");
  expect(feed.ack(delivery)).toBe(false);
  expect(feed.drop(delivery, "TERMINAL")).toBe(false);
  expect(feed.release(delivery, 5)).toBe(false);
  feed.working(delivery, () => expect.unreachable("nobody confirmed it"));
  expect(await feed.ackConfirmed(delivery)).toBe(false);
  // The next pull, once the open one has fallen silent, is asked for from a timer.
  await clock.advance(6_000);
  expect(tried.filter((subject) => subject.endsWith("NEXT.S.c")).length).toBeGreaterThanOrEqual(2);
  expect(tried.filter((subject) => subject === delivery.reply)).toHaveLength(5);
  feed.close();
  expect(clock.timers).toBe(0);
});
