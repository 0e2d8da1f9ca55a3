// npm run simulate -- --seeds N --seed S: runs N simulated deployments, from seed S on. With one seed its history is printed.
import { parseArgs } from "node:util";
import { runTool } from "./steps/run.mjs";
import { setUp } from "./steps/set-up.mjs";
import { printFailure } from "./steps/set-up-error.mjs";

const SIMULATION_MS = 86_400_000;

try {
  const { values } = parseArgs({
    options: { seeds: { type: "string", default: "10000" }, seed: { type: "string", default: "1" } },
  });
  const seeds = positive("--seeds", values.seeds);
  const seed = positive("--seed", values.seed);
  await setUp();
  process.exitCode = await runTool(
    "vitest/vitest.mjs",
    ["run", "--reporter=verbose", "test/simulation/seeds.sim.test.ts"],
    { env: { SIMULATE_SEEDS: String(seeds), SIMULATE_SEED: String(seed) }, timeoutMs: SIMULATION_MS },
  );
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
}

function positive(name, text) {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`${name} is to be a whole number from 1, not ${text}`);
}
