import { parseArgs } from "node:util";
import { expectNoFaults } from "../harness/checkers/fault.js";
import { runChaos } from "./chaos-run.js";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "3" }, seed: { type: "string" } },
});
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error("usage: npm run chaos -- [--minutes N] [--seed S]");
  process.exit(2);
}
const startedAt = performance.now();
const say = (text: string) =>
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(7)} s  ${text}`);
say(`${minutes} minutes of faults, seed ${seed}`);
const result = await runChaos({
  seed,
  durationMs: minutes * 60_000,
  drainMs: 300_000,
  leaseMs: 5_000,
  publishPerSecond: 150,
  everyMs: 2_500,
  say,
});
expectNoFaults(result.faults, `chaos with seed ${seed}`);
say(
  `${result.stored} events, 0 faults; handled again: ${result.repeats}; overlaps with a frozen process: ` +
    `${result.frozenOverlaps}; drained in ${Math.round(result.drainedMs)} ms`,
);
