import { expect, test } from "vitest";
import { runChaos } from "./chaos/chaos-run.js";
import { expectNoFaults } from "./harness/checkers/fault.js";

test("O1–O4, O6, P1: half a minute of kills, freezes, elections and broken links over four workers and three nodes", {
  timeout: 300_000,
}, async () => {
  const seed = 1;
  const log: string[] = [];
  const startedAt = performance.now();
  try {
    const result = await runChaos({
      seed,
      durationMs: 30_000,
      drainMs: 150_000,
      leaseMs: 4_000,
      publishPerSecond: 100,
      everyMs: 2_000,
      say: (text) => void log.push(`${Math.round(performance.now() - startedAt)} ms: ${text}`),
    });
    expectNoFaults(result.faults, `chaos with seed ${seed}`);
    expect(result.stored).toBeGreaterThan(1_000);
  } catch (error) {
    // What happened, for whoever has to find out why.
    console.error(log.join("\n"));
    throw error;
  }
});
