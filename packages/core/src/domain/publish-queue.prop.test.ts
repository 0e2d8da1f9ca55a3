import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { history, type Plant, runs, World } from "./publish-world.test-support.js";

describe("P1 against a model of the server", () => {
  test("P1: per key, stored order is call order, each event once, whatever is lost, late or refused", () => {
    fc.assert(
      fc.property(history, (steps) => {
        const world = new World();
        for (const one of steps) world.take(one);
        world.heal();
        expect(world.faults()).toEqual([]);
      }),
      { numRuns: 1_500 },
    );
  });

  test("the check bites: a publisher that takes a cut connection for a refusal breaks P1", () => {
    const found = fc.check(
      fc.property(history, (steps) => {
        const world = new World({ cutMeansRefused: true });
        for (const one of steps) world.take(one);
        world.heal();
        return world.faults().length === 0;
      }),
      { numRuns: 2_000, seed: 7 },
    );
    expect(found.failed).toBe(true);
  });

  test("the check bites: retries past the duplicate window store an event twice", () => {
    const found = fc.check(
      fc.property(history, (steps) => {
        const world = new World({ believedWindowMs: 60_000 });
        for (const one of steps) world.take(one);
        world.heal();
        return world.faults().length === 0;
      }),
      { numRuns: 2_000, seed: 7 },
    );
    expect(found.failed).toBe(true);
  });
});

describe("P1 with atomic batches", () => {
  test("P1: long runs go out as batches and are stored in call order, each event once, whatever is lost, late or refused", () => {
    let batches = 0;
    fc.assert(
      fc.property(runs, (steps) => {
        const world = new World();
        for (const one of steps) world.take(one);
        world.heal();
        batches += world.batchesStored;
        expect(world.faults()).toEqual([]);
      }),
      { numRuns: 700 },
    );
    expect(batches).toBeGreaterThan(100);
  });

  const bites = (plant: Plant) =>
    fc.check(
      fc.property(runs, (steps) => {
        const world = new World(plant);
        for (const one of steps) world.take(one);
        world.heal();
        return world.faults().length === 0;
      }),
      { numRuns: 2_000, seed: 1 },
    ).failed;

  test("the check bites: a batch that is cut off taken for one of which nothing is stored breaks P1", () => {
    expect(bites({ cutMeansRefused: true })).toBe(true);
  });

  test("the check bites: events of a batch without an outcome sent again under new ids are stored twice", () => {
    expect(bites({ newIdsAfterBatch: true })).toBe(true);
  });

  test("the check bites: a server that stores a late batch although one of its ids is known stores events twice", () => {
    expect(bites({ lateBatchesStored: true })).toBe(true);
  });

  test("the check bites: a batch of which a part is stored taken for one of which nothing is", () => {
    expect(bites({ partTakenForNone: true })).toBe(true);
  });

  test("the check bites: a batch whose answer is counted from the wrong end gives receipts that are not true", () => {
    expect(bites({ firstSeqTold: true })).toBe(true);
  });
});
