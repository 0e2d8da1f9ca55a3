import { Command, InvalidArgumentError } from "commander";
import { expectNoFaults } from "../harness/checkers/fault.js";
import { runChaos } from "./chaos-run.js";

const given = new Command("npm run chaos --")
  .description(
    "Publishes to four worker processes on a cluster of three nodes while processes, nodes and links are broken one after another, and checks that order was kept and everything was handled.",
  )
  .option("--minutes <number>", "how long things are broken", positive, 3)
  .option("--seed <number>", "which faults, a whole number (default: a random one, which is printed)", whole)
  .allowExcessArguments(false)
  .showHelpAfterError()
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{ minutes: number; seed?: number }>();
const { minutes, seed = Math.floor(Math.random() * 2 ** 31) } = given;
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

function positive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError("It must be a number above 0.");
}

function whole(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError("It must be a whole number.");
}
