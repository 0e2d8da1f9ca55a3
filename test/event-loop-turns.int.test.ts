import { openLanes } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";

test("async handlers that only compute let the event loop go round, however many events are in hand", async () => {
  await using server = await startTestServer();
  const connection = await connect({ servers: [...server.urls] });
  const lanes = await openLanes(connection, { stream: "S", create: { subject: "s", lanes: 4 } });
  const publisher = lanes.publisher();
  const events = 800;
  await Promise.all(
    Array.from({ length: events }, (_, n) => publisher.publish({ key: `k${n % 100}`, type: "t", data: n })),
  );
  let rounds = 0;
  let seen = 0;
  let alone = 0;
  let longest = 0;
  let looking = true;
  const look = () => {
    rounds++;
    if (looking) setImmediate(look);
  };
  look();
  await lanes.work({ group: "g", maxAckPending: 200, concurrency: 200 }, async () => {
    alone = rounds === seen ? alone + 1 : 1;
    seen = rounds;
    longest = Math.max(longest, alone);
    const until = performance.now() + 1;
    while (performance.now() < until);
  });
  await lanes.group("g").caughtUp();
  looking = false;
  await lanes.close();
  await connection.close();
  // Each computes for a millisecond, and a round is to take a few: without rounds all that are in hand run in one.
  expect(longest).toBeLessThan(50);
});
