import { expect, test } from "vitest";
import { plantedFaults } from "./planted-faults.js";
import { simulate } from "./simulate.js";

/** As many seeds as the default run has: what is planted has to be found by it. */
const defaultSeeds = 400;

/** Found at once: in a world as the default run has it, by a broken invariant, not by standing still. */
test.each(plantedFaults)(
  "the simulator finds: $name",
  async (planted) => {
    const seeds = [planted.foundBy, ...Array.from({ length: defaultSeeds }, (_, index) => index + 1)];
    for (const seed of seeds) {
      const { faults } = await simulate(seed, planted);
      const [first] = faults;
      if (first === undefined) continue;
      // The same seed without it is sound, so it is the planted fault that was found.
      expect((await simulate(seed)).faults, `seed ${seed} without the planted fault`).toEqual([]);
      console.log(`${planted.name}: seed ${seed}, ${first.invariant} ${first.text}`);
      return;
    }
    expect.fail(`not found in ${defaultSeeds} seeds`);
  },
  300_000,
);
