import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openLanes } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";

const MIB = 1024 * 1024;

test("300,000 keys that occur once leave no more on the heap than 10,000 do", {
  timeout: 400_000,
}, async () => {
  await using server = await startTestServer();
  const connection = await connect({ servers: server.url });
  try {
    const create = { subject: "orders", lanes: 64 };
    await using lanes = await openLanes(connection, { stream: "ORDERS", create });
    let handled = 0;
    await lanes.work({ group: "audit", assignment: "owned", maxAckPending: 64, leaseMs: 10_000 }, () => {
      handled++;
    });
    let published = 0;
    const upTo = async (count: number): Promise<number> => {
      await using publisher = lanes.publisher();
      while (published < count) {
        await publisher.ready();
        void publisher.publish({ key: `key-${published++}`, type: "tick", data: published });
      }
      await publisher.flush();
      await awaitCondition(() => handled >= count, {
        what: () => `${count} events to be handled (so far ${handled})`,
        timeoutMs: 150_000,
      });
      return heapAfterCollection();
    };
    const few = await upTo(10_000);
    const many = await upTo(300_000);
    console.log(
      `heap after 10,000 keys ${(few / MIB).toFixed(1)} MiB, after 300,000 ${(many / MIB).toFixed(1)} MiB`,
    );
    expect(many - few).toBeLessThan(30 * MIB);
  } finally {
    await connection.close();
  }
});

function heapAfterCollection(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let round = 0; round < 3; round++) collect();
  return process.memoryUsage().heapUsed;
}
