import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { expectNoFaults } from "./harness/checkers/fault.js";
import { isKind, startOwnedScene } from "./harness/owned-scene.js";
import { SeededRandom } from "./harness/seeded-random.js";

test.each(["limits", "workqueue"] as const)(
  "O1–O4: claimants killed with -9 at any moment of their start leave nothing that the next one cannot go on from (%s)",
  { timeout: 400_000 },
  async (retention) => {
    const seed = 3;
    const random = new SeededRandom(seed);
    await using scene = await startOwnedScene({
      leaseMs: 1_000,
      create: { subject: "orders", lanes: 16, streamConfig: { retention } },
      work: { maxAckPending: 8 },
    });
    const publisher = scene.lanes.publisher();
    const handler = [{ act: { type: "succeed" as const, afterMs: 2 } }];
    const keys = Array.from({ length: 64 }, (_, n) => `key-${n}`);
    let published = 0;
    for (let round = 1; round <= 15; round++) {
      for (const key of keys) await publisher.publish({ key, type: "tick", data: { n: round } });
      published += keys.length;
      // Ready means joined: claims, consumers and first deliveries come in the moments after that.
      const claimant = await scene.worker({ name: "claimant", handler });
      await sleep(random.between(0, 400));
      await claimant.kill();
    }
    const survivor = await scene.worker({ name: "survivor", handler });
    await scene.settled(published, 60_000);
    expect(await survivor.stop()).toEqual({ code: 0, signal: null });
    expect(scene.history.read().filter(isKind("killed"))).toHaveLength(15);
    const faults = (await scene.check()).faults.filter(
      ({ text }) => retention === "limits" || !/is not stored under that key/.test(text),
    );
    expectNoFaults(faults, `claimants killed with seed ${seed}`);
  },
);
