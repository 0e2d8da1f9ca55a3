import { Command, InvalidArgumentError } from "commander";

/**
 * Reads the command line of `npm run simulate`. Ends the process after help, with code 0, and after saying what is wrong
 * with the options, with code 2.
 *
 * @param {readonly string[]} args
 * @returns {{ seeds: number, seed: number }}
 */
export function parseSimulateOptions(args) {
  return new Command("npm run simulate --")
    .description(
      "Runs small deployments in virtual time, each decided by its seed, and judges them. With one seed its history is printed.",
    )
    .option("--seeds <count>", "how many", positive, 10_000)
    .option("--seed <number>", "the first one", positive, 1)
    .allowExcessArguments(false)
    .showHelpAfterError()
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .parse(args, { from: "user" })
    .opts();
}

function positive(text) {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError("It must be a whole number from 1.");
}
