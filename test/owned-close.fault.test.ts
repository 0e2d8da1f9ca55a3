import { setTimeout as sleep } from "node:timers/promises";
import { openLanes } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";

test("O6: after close() has resolved no handler starts, though the server is frozen and nothing could be given back", async () => {
  await using server = await startTestServer();
  const connection = await connect({ servers: [...server.urls] });
  const lanes = await openLanes(connection, { stream: "S", create: { subject: "s", lanes: 1 } });
  const publisher = lanes.publisher();
  for (let n = 0; n < 400; n++) void publisher.publish({ key: `k${n % 4}`, type: "t", data: n });
  await publisher.flush();
  let starts = 0;
  const worker = await lanes.work({ group: "g", maxAckPending: 400 }, async () => {
    starts++;
    await sleep(20);
  });
  await awaitCondition(() => starts >= 20, { what: "handlers to run", timeoutMs: 20_000 });
  const [node] = server.nodes;
  node?.freeze();
  try {
    await worker.close({ graceMs: 100 });
    const atClose = starts;
    // What runs ends within this time many times over, and each end would let the key's next event start.
    await sleep(500);
    expect(starts).toBe(atClose);
  } finally {
    node?.thaw();
  }
  await lanes.close();
  await connection.close();
});
