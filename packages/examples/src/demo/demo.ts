import { type Lanes, openLanes } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { connect } from "@nats-io/transport-node";
import type { Cleanup } from "./cleanup.js";
import { conclusion } from "./conclusion.js";
import type { DemoOptions } from "./demo-options.js";
import { generatedEvents } from "./generated-events.js";
import { openInput } from "./input-bytes.js";
import { InputError } from "./input-error.js";
import type { InputEvent } from "./input-event.js";
import { KeySequences, type SequenceReport } from "./key-sequences.js";
import { MODE_TITLES, modeDescription } from "./modes.js";
import { ndjsonEvents } from "./ndjson-events.js";
import { publishInput } from "./publish-input.js";
import { resultsTable } from "./results-table.js";
import { type ModeResult, runMode } from "./run-mode.js";
import { temporaryFolder } from "./temporary-folder.js";
import { formatCount, formatEvents, type Terminal } from "./terminal.js";

const STREAM = "DEMO";

/**
 * The whole demo. The input is read once, into a stream; every mode then handles that stream.
 *
 * @throws InputError before anything is shown, if the input is not what it should be
 */
export async function runDemo(options: DemoOptions, terminal: Terminal, cleanup: Cleanup): Promise<void> {
  const sequences = new KeySequences();
  const input = await openEvents(options, sequences, cleanup);
  const folder = await cleanup.add(await temporaryFolder("lanekeeper-demo-"));
  const server = await cleanup.add(await startTestServer());
  const connection = await connect({ servers: server.url });
  const lanes = await openLanes(connection, {
    stream: STREAM,
    create: { subject: "demo", lanes: options.lanes },
  });
  if (options.input !== undefined) {
    terminal.print(`  reading ${options.input.path === "-" ? "standard input" : options.input.path}`);
  }
  const events = await publish(lanes, first(input, options.events), terminal);
  for (const line of describeInput(sequences.report(), options)) terminal.print(line);
  terminal.print("");
  const results: ModeResult[] = [];
  for (const mode of options.modes) {
    terminal.print(`${terminal.colors.bold(MODE_TITLES[mode])}: ${modeDescription(mode, options.lanes)}`);
    const task = {
      url: server.url,
      stream: STREAM,
      rows: options.input === undefined ? ("customers" as const) : ("keys" as const),
      // All workers together as many as the unordered consumer has in flight.
      handlers: Math.max(Math.floor(options.lanes / options.workers), 1),
      wait: options.wait,
      seed: options.seed,
    };
    const run = { ...options, task, events, folder: folder.path };
    results.push(await runMode(mode, run, connection, terminal, cleanup));
  }
  await lanes.close();
  await connection.close();
  const ruled = options.input === undefined || options.input.fields.order !== undefined;
  terminal.print(`\n${resultsTable(results, ruled, terminal.colors)}\n`);
  for (const line of conclusion(results, ruled)) terminal.print(line);
}

/** Opens the input, so that a wrong name is found out at once; reads nothing yet. */
async function openEvents(
  options: DemoOptions,
  sequences: KeySequences,
  cleanup: Cleanup,
): Promise<AsyncIterable<InputEvent> | Iterable<InputEvent>> {
  if (options.input === undefined) return generatedEvents(options.events, options.seed, sequences);
  const bytes = await cleanup.add(await openInput(options.input.path));
  return ndjsonEvents(bytes, options.input.fields, sequences);
}

async function publish(
  lanes: Lanes<Record<string, unknown>>,
  input: AsyncIterable<InputEvent>,
  terminal: Terminal,
): Promise<number> {
  const line = terminal.progress("publishing");
  const startedAt = performance.now();
  const events = await publishInput(lanes, input, (count) => line.update(count));
  if (events === 0) throw new InputError("the input has no events");
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  line.finish(`${"published".padEnd(13)} ${formatEvents(events)} in ${seconds} s`);
  return events;
}

/** The first `limit` events; reads no further. */
async function* first(
  input: AsyncIterable<InputEvent> | Iterable<InputEvent>,
  limit: number,
): AsyncGenerator<InputEvent, void, undefined> {
  let count = 0;
  for await (const event of input) {
    yield event;
    if (++count >= limit) return;
  }
}

function describeInput(report: SequenceReport, options: DemoOptions): string[] {
  const keys = `${formatEvents(report.events)} of ${formatCount(report.keys)} ${report.keys === 1 ? "key" : "keys"}`;
  if (options.input === undefined) {
    return [`  ${keys}: customers are created, order, pay, get their goods and leave (seed ${options.seed})`];
  }
  const order = options.input.fields.order;
  if (order === undefined) return [`  ${keys}`];
  const faults = report.backwards + report.repeats;
  if (faults > 0) {
    return [
      `  ${keys}; in the input itself "${order}" goes backwards ${formatCount(report.backwards)} times and repeats ${formatCount(report.repeats)} times`,
      `  the first: ${report.firstFault}. Every mode's "broke a rule" counts these too.`,
    ];
  }
  const gaps = report.gaps === 0 ? "" : `, leaving numbers out ${formatCount(report.gaps)} times`;
  return [`  ${keys}; in the input "${order}" rises within every key${gaps}`];
}
