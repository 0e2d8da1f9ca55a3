// npm run simulate -- --seeds N --seed S: runs N simulated deployments, from seed S on. With one seed its history is printed.
import { runTool } from "./steps/run.mjs";
import { setUp } from "./steps/set-up.mjs";
import { printFailure } from "./steps/set-up-error.mjs";

const SIMULATION_MS = 86_400_000;

try {
  await setUp();
  // What it imports is there only now.
  const { parseSimulateOptions } = await import("./steps/simulate-options.mjs");
  const { seeds, seed } = parseSimulateOptions(process.argv.slice(2));
  process.exitCode = await runTool(
    "vitest/vitest.mjs",
    ["run", "--reporter=verbose", "test/simulation/seeds.sim.test.ts"],
    { env: { SIMULATE_SEEDS: String(seeds), SIMULATE_SEED: String(seed) }, timeoutMs: SIMULATION_MS },
  );
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
}
