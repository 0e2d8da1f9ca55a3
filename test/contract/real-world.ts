import { laneSubject } from "@lanekeeper/partitioner";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { bucketAdapter } from "../../packages/core/src/nats/bucket-adapter.js";
import { connectionAdapter } from "../../packages/core/src/nats/connection-adapter.js";
import { jetStreamApi } from "../../packages/core/src/nats/jetstream-api.js";
import { laneConsumerAdapter } from "../../packages/core/src/nats/lane-consumer-adapter.js";
import { laneFeedAdapter } from "../../packages/core/src/nats/lane-feed-adapter.js";
import { streamAdapter } from "../../packages/core/src/nats/stream-adapter.js";
import { findOrCreateStream } from "../../packages/core/src/nats/stream-setup.js";
import { systemClock } from "../../packages/core/src/runtime/clock.js";
import { startTestServer } from "../../packages/core/src/testing/index.js";
import { contractLayout, type OpenContractWorld } from "./contract-world.js";

/** A nats-server of its own, through the production adapters. */
export const openRealWorld: OpenContractWorld = async (retention) => {
  const server = await startTestServer();
  const connection = await connect({ servers: server.url });
  const api = await jetStreamApi(connection);
  const streamConfig = { retention } as const;
  await findOrCreateStream(api, "ORDERS", { layout: contractLayout, streamConfig });
  const port = connectionAdapter(connection, api.prefix);
  return {
    stream: streamAdapter(api.manager, "ORDERS"),
    consumers: laneConsumerAdapter(api, "ORDERS"),
    bucket: await bucketAdapter(connection, api, { bucket: "contract", create: true, replicas: 1 }),
    openFeed: laneFeedAdapter(connection, port, api, "ORDERS", systemClock),
    async publish(key) {
      await jetstream(connection).publish(laneSubject(contractLayout, { key, type: "happened" }), "{}");
    },
    now: () => systemClock.now(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    drive: (body) => body(),
    async [Symbol.asyncDispose]() {
      port.stop();
      await connection.close();
      await server[Symbol.asyncDispose]();
    },
  };
};
