import type { JetStreamApi } from "../../packages/core/src/nats/jetstream-api.js";
import { laneFeedAdapter } from "../../packages/core/src/nats/lane-feed-adapter.js";
import { pause } from "../../packages/core/src/runtime/clock.js";
import { SeededRandom } from "../harness/seeded-random.js";
import { SimConnection } from "../simulation/sim-connection.js";
import { SimLink } from "../simulation/sim-link.js";
import { simPorts } from "../simulation/sim-ports.js";
import { SimProcess } from "../simulation/sim-process.js";
import { SimServer } from "../simulation/sim-server.js";
import { Timeline } from "../simulation/timeline.js";
import { contractLayout, type OpenContractWorld } from "./contract-world.js";

/** The simulated server in good weather. */
export const openSimulatedWorld: OpenContractWorld = async (retention) => {
  const timeline = new Timeline();
  const random = new SeededRandom(1);
  const process = new SimProcess("contract", timeline);
  const network = { fastest: 0.1, slowest: 1, pauseChance: 0, longestPause: 0 };
  const link = new SimLink(process, timeline, random, network);
  const stream = { name: "ORDERS", layout: contractLayout, retention, replicas: 1 };
  const server = new SimServer(timeline, random, stream, {
    lostDelivery: 0,
    lostWithSubscription: 0,
    fallsBack: false,
    lostAck: 0,
    lostAnswer: 0,
    bucketReplicas: 1,
  });
  const connection = new SimConnection(link, server, () => {});
  const ports = simPorts(link, server, timeline, random, { timeoutMs: 5_000, watchLagMs: 0, silentWatch: 0 });
  const api = { prefix: "$JS.API", timeoutMs: 5_000 } as JetStreamApi;
  return {
    ...ports,
    openFeed: laneFeedAdapter(connection.asClient(), connection.asPort(), api, "ORDERS", process.clock),
    publish: async (key) => server.publish(key),
    now: () => process.clock.now(),
    sleep: (ms) => pause(process.clock, ms),
    async drive(body) {
      let over = false;
      const running = body().finally(() => {
        over = true;
      });
      // Its failure is told below, once time stands still.
      running.catch(() => {});
      await timeline.run(() => over);
      await running;
    },
    async [Symbol.asyncDispose]() {
      process.kill();
    },
  };
};
