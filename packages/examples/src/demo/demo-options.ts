import { Command, InvalidArgumentError, Option } from "commander";
import { InputError } from "./input-error.js";
import { MODES, type Mode } from "./modes.js";
import type { NdjsonFields } from "./ndjson-events.js";
import type { WaitRange } from "./worker-task.js";

export interface DemoOptions {
  /** Absent: generated customers' histories. */
  readonly input?: { readonly path: string; readonly fields: NdjsonFields };
  /** How many events to generate, or at most to read. */
  readonly events: number;
  readonly seed: number;
  readonly workers: number;
  readonly lanes: number;
  readonly modes: readonly Mode[];
  readonly wait: WaitRange;
  readonly maxSeconds: number;
}

const DEFAULT_EVENTS = 2_000;

/**
 * Reads the command line.
 *
 * @throws CommanderError, after help or a message was written; InputError for options that do not go together
 */
export function parseDemoOptions(args: readonly string[]): DemoOptions {
  const command = new Command("npm run demo --")
    .description(
      "Has the same events handled in three ways, each by several worker processes on a real nats-server, and prints what came of it: how fast, and what went wrong.",
    )
    .option("-i, --input <file>", "your own events: one JSON object per line, also gzip; - is standard input")
    .option("-k, --key <field>", "with --input: the field of the key; customer.id is the id within customer")
    .option("-o, --order <field>", "with --input: a field whose value rises within a key")
    .option("-t, --type <field>", 'with --input: the field of the type (without it, every type is "event")')
    .option(
      "-e, --events <count>",
      `events to generate (default: ${DEFAULT_EVENTS}), or at most to read`,
      whole(1),
    )
    .addOption(
      new Option("-m, --modes <names>", `some of ${MODES.join(",")}`)
        .argParser(modes)
        .default([...MODES], "all"),
    )
    .option("-w, --workers <count>", "worker processes, at most 32", whole(1, 32), 3)
    .option(
      "-l, --lanes <count>",
      "lanes, and events in flight of the unordered consumer",
      whole(1, 1024),
      64,
    )
    .addOption(
      new Option("--wait <min-max>", "milliseconds that a handler waits, as for a call to another service")
        .argParser(waitRange)
        .default({ minMs: 2, maxMs: 8 }, "2-8"),
    )
    .option("--seed <number>", "other generated events and other waits", whole(0), 1)
    .option(
      "--max-seconds <count>",
      "time for each mode, in seconds; then it is stopped",
      whole(1, 86_400),
      15,
    )
    .addHelpText("after", NOTES)
    .allowExcessArguments(false)
    .showHelpAfterError("Try: npm run demo -- --help")
    .exitOverride()
    .parse(args, { from: "user" });
  const given = command.opts<GivenOptions>();
  const { key, order, type, input, events, ...rest } = given;
  if (input === undefined) {
    for (const [name, value] of Object.entries({ key, order, type })) {
      if (value !== undefined)
        throw new InputError(`--${name} says how to read an --input, and there is none`);
    }
    return { ...rest, events: events ?? DEFAULT_EVENTS };
  }
  if (key === undefined)
    throw new InputError("--input also needs --key, the name of the field that is the key");
  const fields = {
    key,
    ...(order === undefined ? {} : { order }),
    ...(type === undefined ? {} : { type }),
  };
  return { ...rest, input: { path: input, fields }, events: events ?? Number.POSITIVE_INFINITY };
}

interface GivenOptions {
  input?: string;
  key?: string;
  order?: string;
  type?: string;
  events?: number;
  modes: Mode[];
  workers: number;
  lanes: number;
  wait: WaitRange;
  seed: number;
  maxSeconds: number;
}

function whole(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}

function modes(text: string): Mode[] {
  const names = text.split(",").map((name) => name.trim());
  const chosen = MODES.filter((mode) => names.includes(mode));
  const unknown = names.find((name) => !MODES.some((mode) => mode === name));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`"${unknown}" is none of ${MODES.join(", ")}.`);
  }
  return chosen;
}

function waitRange(text: string): WaitRange {
  const [, min, max] = /^(\d{1,5})-(\d{1,5})$/.exec(text) ?? [];
  if (min === undefined || max === undefined || Number(min) > Number(max)) {
    throw new InvalidArgumentError("It must be two whole numbers of milliseconds, the lower one first: 2-8.");
  }
  return { minMs: Number(min), maxMs: Number(max) };
}

const NOTES = `
Modes
  one-at-a-time  one consumer with MaxAckPending 1: in order, and slow
  unordered      one consumer with many events in flight: fast, and out of order
  lanekeeper     lanes: a key's events in order, keys side by side

Input
  The events of a key are expected to be handled in the order of the lines.
  A key is a string; a whole number is taken as the string of its digits. Blank lines are passed over.
  The order field holds numbers, or dates and times with an offset (2026-05-01T09:30:00Z). Where the input itself
  goes backwards, that is reported and counted in every mode's "broke a rule".
  A line that is no event ends the demo: its number and its fault are named. No line may exceed 1,000,000 bytes.

Examples
  npm run demo
  npm run demo -- --events 10000 --modes unordered,lanekeeper
  npm run demo -- --input orders.ndjson --key customer.id --order version
  zcat orders.ndjson.gz | npm run demo -- --input - --key customer.id

Exit codes
  0  done     1  something failed     2  wrong options or input     130  interrupted (Ctrl-C)

NO_COLOR=1 turns colours off. Nothing is left behind: the server, its store and all databases are temporary.`;
