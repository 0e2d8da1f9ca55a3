import { Argument, Command, InvalidArgumentError, Option } from "commander";
import type { Benchmark } from "./benchmarks/benchmark.js";
import { catalogue } from "./catalogue.js";
import { runBenchmarks } from "./run-benchmarks.js";

const ALL = "all";

interface CliOptions {
  quick?: true;
  json?: true;
  markdown?: true;
  list?: true;
  only?: string;
  rounds: number;
  seed: number;
  shrink: number;
}

const program = new Command("npm run bench --")
  .description("Measures Lanekeeper beside what a user would otherwise use or write, in alternate rounds.")
  .usage("[options] [name]")
  .addArgument(
    new Argument("[name]", `which benchmark: ${[ALL, ...catalogue.map(({ name }) => name)].join(", ")}`)
      .argParser(benchmarks)
      .default([...catalogue], ALL),
  )
  .option("--quick", "smaller sizes and fewer cases, each benchmark under 40 s")
  .option("--rounds <number>", "rounds of each subject, 3 or more", atLeast(3), 3)
  .option("--only <text>", "only the cases whose name in the table holds this text")
  .option("--seed <number>", "of keys and durations", atLeast(1), 1)
  .option("--json", "the last line of the output is one object with all rows; everything else goes to stderr")
  .addOption(new Option("--markdown", "also writes the results into bench/README.md").conflicts("only"))
  .option("--list", "names the benchmarks and what they measure")
  .addOption(
    new Option("--shrink <number>", "divides sizes and times, to try out the benchmarks themselves")
      .argParser(atLeast(1))
      .default(1)
      .hideHelp(),
  )
  .allowExcessArguments(false)
  .showHelpAfterError()
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .action(async (chosen: readonly Benchmark[], options: CliOptions) => {
    if (options.list) {
      for (const { name, summary } of catalogue) console.log(`${name.padEnd(9)} ${summary}`);
      return;
    }
    const { failed } = await runBenchmarks(chosen, {
      quick: options.quick ?? false,
      json: options.json ?? false,
      markdown: options.markdown ?? false,
      rounds: options.rounds,
      seed: options.seed,
      only: options.only,
      shrink: options.shrink,
      command: ["npm run bench --", ...process.argv.slice(2)].join(" "),
    });
    if (failed) process.exitCode = 1;
  });

await program.parseAsync();

function benchmarks(name: string): readonly Benchmark[] {
  if (name === ALL) return catalogue;
  const found = catalogue.filter((benchmark) => benchmark.name === name);
  if (found.length === 0) throw new InvalidArgumentError(`There is no such benchmark; see --list.`);
  return found;
}

function atLeast(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < least) {
      throw new InvalidArgumentError(`It must be a whole number from ${least}.`);
    }
    return value;
  };
}
