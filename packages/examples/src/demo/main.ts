/** The program behind `npm run demo`. */
import { setTimeout as sleep } from "node:timers/promises";
import { CommanderError } from "commander";
import { Cleanup } from "./cleanup.js";
import { runDemo } from "./demo.js";
import { parseDemoOptions } from "./demo-options.js";
import { InputError } from "./input-error.js";
import { type Interruption, interruption } from "./interruption.js";
import { Terminal } from "./terminal.js";

const SIGNAL_GRACE_MS = 250;

const interrupted = interruption();
const cleanup = new Cleanup();
const outcome = await Promise.race([demo(), interrupted]);
await cleanup[Symbol.asyncDispose]();
// Standard input may still be open and would keep the process alive.
process.exit(outcome.exitCode);

async function demo(): Promise<Interruption> {
  try {
    const options = parseDemoOptions(process.argv.slice(2));
    await runDemo(options, await cleanup.add(new Terminal()), cleanup);
    return { exitCode: 0 };
  } catch (error) {
    return { exitCode: await told(error) };
  }
}

/** Tells what went wrong, unless it did because the demo is being interrupted. */
async function told(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  // Ctrl-C ends the processes that the demo needs as well, and what that breaks may be seen first.
  const signal = error instanceof InputError ? undefined : await Promise.race([interrupted, grace()]);
  if (signal !== undefined) return signal.exitCode;
  // The line that is alive must end before anything else is written.
  await cleanup[Symbol.asyncDispose]();
  if (error instanceof InputError) {
    console.error(`demo: ${error.message}`);
    return 2;
  }
  console.error("demo:", error);
  return 1;
}

async function grace(): Promise<undefined> {
  await sleep(SIGNAL_GRACE_MS);
}
