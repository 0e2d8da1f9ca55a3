import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare, isWanted } from "../measure/compare.js";
import { readTrial, type Window } from "../measure/read-trial.js";
import type { Row } from "../measure/row.js";
import type { Contestant } from "../measure/trial.js";
import { callbackReader } from "../subjects/callback-reader.js";
import { forAwaitReader } from "../subjects/for-await-reader.js";
import { laneRecipe } from "../subjects/lane-recipe.js";
import { lanekeeperReader } from "../subjects/lanekeeper-reader.js";
import type { Reader } from "../subjects/reader.js";
import { type BenchStream, deleteStream, makeStream } from "../workload/bench-stream.js";
import { keySequence } from "../workload/key-sequence.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

const KEYS = 1_000;

interface Case {
  readonly lanes: number;
  readonly maxAckPending: readonly number[];
  readonly messages: number;
  /** Whether the hand-written recipe with as many lanes runs, too. */
  readonly recipe: boolean;
}

const FULL: readonly Case[] = [
  { lanes: 16, maxAckPending: [1, 256], messages: 150_000, recipe: true },
  { lanes: 64, maxAckPending: [1, 256], messages: 150_000, recipe: true },
  { lanes: 256, maxAckPending: [1, 256], messages: 150_000, recipe: true },
  { lanes: 1_024, maxAckPending: [1, 256], messages: 60_000, recipe: true },
];

/** The cases that are easiest to get wrong; the others take longer than a quick run may. */
const QUICK: readonly Case[] = [
  { lanes: 64, maxAckPending: [1, 256], messages: 16_000, recipe: false },
  { lanes: 1_024, maxAckPending: [1], messages: 3_000, recipe: true },
];

/** Until the code is compiled. */
const WARM_UP: Case = { lanes: 16, maxAckPending: [1, 256], messages: 3_000, recipe: false };

export const consume: Benchmark = {
  name: "consume",
  summary:
    "reading with a handler that does nothing, beside the client's two unordered idioms and the recipe",
  notes: [
    "One process reads a stream that is already full; 1,000 keys, the handler does nothing.",
    "Measured in the middle of the run: when all lanes are there, from 10 % to 90 % of the events. readyMs is how long it took until then. With maxAckPending 1, Lanekeeper's and the recipe's handlers are held until all lanes are there, so that none is ahead when the clock starts, and measured is from 30 % on.",
    "Everybody reads a small stream beforehand, which does not count.",
    "The idioms read with one consumer and keep no order once anything fails, is redelivered or runs in a second process. The recipe, a durable consumer with MaxAckPending 1 for each lane, does; a quick run has it for 1,024 lanes only.",
    "A stream that is already full is read by many filtered consumers at the server's pace: each looks through the stream for the next event of its lane, so that with 1,024 lanes it passes over some thousand others for each. What the recipe costs there, the server's CPU above all, is the server's; the rest is Lanekeeper's.",
    "With 1,024 lanes only some 640 have a key at all, since there are 1,000 keys.",
  ],
  async run(options) {
    await using server = await startTestServer();
    const rows: Row[] = [];
    const cases = (options.quick ? QUICK : FULL).filter((one) => isWanted(nameOf(one), options));
    if (cases.length > 0) await runCase(server, WARM_UP, { ...options, rounds: 1, only: undefined });
    for (const one of cases) rows.push(...(await runCase(server, one, options)));
    return { rows, versions: { "nats-server": server.version } };
  },
};

function nameOf({ lanes }: Case): string {
  return `consume, no-op, ${lanes} lanes`;
}

async function runCase(server: TestServer, one: Case, options: BenchmarkOptions): Promise<Row[]> {
  const { lanes, maxAckPending } = one;
  const messages = sized(one.messages, options, 500);
  options.onProgress(`consume: storing ${messages} events in ${lanes} lanes`);
  const sequence = keySequence({ keys: KEYS, messages, distribution: "uniform", seed: options.seed });
  const stream = await makeStream(server, { lanes, keys: KEYS, sequence });
  const rows = await compare(
    {
      name: nameOf(one),
      subjects: maxAckPending.map((pending) =>
        contestant(
          stream,
          lanekeeperReader({ maxAckPending: pending, concurrency: 1_000 }),
          windowOf(one, pending, options),
        ),
      ),
      references: [
        ...(one.recipe ? [contestant(stream, laneRecipe(lanes), windowOf(one, 1, options))] : []),
        contestant(stream, forAwaitReader, { type: "middle" }),
        contestant(stream, callbackReader, { type: "middle" }),
      ],
    },
    options,
  );
  await deleteStream(stream);
  return rows;
}

/** Handlers are held until all lanes are there, unless the reader would get too much of the stream meanwhile. */
function windowOf(one: Case, maxAckPending: number, options: BenchmarkOptions): Window {
  const held = one.lanes * maxAckPending <= sized(one.messages, options) * 0.3;
  return { type: "middle", held };
}

function contestant(stream: BenchStream, reader: Reader, window: Window): Contestant {
  return { name: reader.name, run: () => readTrial(reader, stream, window) };
}
