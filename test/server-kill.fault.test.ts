import { expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { expectNoFaults } from "./harness/checkers/fault.js";
import { handlerRuns } from "./harness/checkers/handler-runs.js";
import { killAndRestart } from "./harness/kill-server.js";
import { startLaneScene } from "./harness/lane-scene.js";
import { startNatsProxy } from "./harness/nats-proxy.js";

const TIMEOUT = { timeout: 240_000 };

// A killed server may have given out again what it forgot: an ack from before settles what somebody else is running.
test(
  "O2: acks from before a server's kill -9 are not sent again to the server that comes back",
  TIMEOUT,
  async () => {
    await using scene = await startLaneScene({ ackWaitMs: 6_000 });
    // Clients reach a proxy and not the server, so they come back the moment it does.
    await using proxy = await startNatsProxy(scene.server.url);
    const handler = [{ act: { type: "succeed" as const, afterMs: 30 } }];
    const workers = await Promise.all(
      ["A", "B"].map((name) => scene.worker({ name, handler, servers: proxy.url })),
    );
    const events = { type: "turns" as const, count: 1_600, keys: 40 };
    const publisher = await scene.publisher({ name: "publisher", events, perSecond: 400 });
    for (const share of [300, 600, 900, 1_200]) {
      await scene.settled(share, 60_000);
      await killAndRestart(scene);
    }
    await publisher.finished(60_000);
    await scene.settled(1_600, 60_000);
    for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
    expectNoFaults((await scene.check()).faults);
    expect(await scene.stored()).toHaveLength(1_600);
  },
);

test(
  "O2: an overlap with what a killed server had just given away is the only one, and its worker has told it",
  TIMEOUT,
  async () => {
    await using scene = await startLaneScene({
      ackWaitMs: 6_000,
      create: { subject: "orders", lanes: 32 },
    });
    const handler = [{ act: { type: "succeed" as const, afterMs: 2_500 } }];
    const workers = await Promise.all(["A", "B"].map((name) => scene.worker({ name, handler })));
    const events = { type: "turns" as const, count: 120, keys: 60 };
    const publisher = await scene.publisher({ name: "publisher", events });
    for (let kill = 1; kill <= 4; kill++) {
      const started = handlerRuns(scene.history.read()).length;
      const another = () => handlerRuns(scene.history.read()).length > started;
      await awaitCondition(another, { what: "another handler to start", everyMs: 5, timeoutMs: 60_000 });
      await killAndRestart(scene);
    }
    await publisher.finished(60_000);
    await scene.settled(120, 100_000);
    for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
    const { faults, crashOverlaps } = await scene.check();
    expectNoFaults(faults);
    const told = new Set(
      scene.history.read().flatMap((record) => {
        const isTold = record.kind === "notification" && record.type === "overlap-possible";
        return isTold ? [`${record.process} ${record.seq}`] : [];
      }),
    );
    expect(crashOverlaps.filter(({ inHand: { process, seq } }) => !told.has(`${process} ${seq}`))).toEqual(
      [],
    );
    // A handler of 2.5 s runs at every kill, so something has been told whether or not the server forgot anything.
    expect(told.size).toBeGreaterThan(0);
    console.log(`${crashOverlaps.length} stated overlaps, ${told.size} told`);
  },
);
