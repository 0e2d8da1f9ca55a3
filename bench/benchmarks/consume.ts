import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare } from "../measure/compare.js";
import { readTrial } from "../measure/read-trial.js";
import type { Row } from "../measure/row.js";
import type { Contestant } from "../measure/trial.js";
import { callbackReader } from "../subjects/callback-reader.js";
import { forAwaitReader } from "../subjects/for-await-reader.js";
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
}

const FULL: readonly Case[] = [
  { lanes: 16, maxAckPending: [1, 256], messages: 150_000 },
  { lanes: 64, maxAckPending: [1, 256], messages: 150_000 },
  { lanes: 256, maxAckPending: [1, 256], messages: 150_000 },
  { lanes: 1_024, maxAckPending: [1, 256], messages: 150_000 },
];

/** The cases that are easiest to get wrong; the others take longer than a quick run may. */
const QUICK: readonly Case[] = [
  { lanes: 64, maxAckPending: [1, 256], messages: 30_000 },
  { lanes: 1_024, maxAckPending: [1], messages: 30_000 },
];

export const consume: Benchmark = {
  name: "consume",
  summary: "reading with a handler that does nothing, beside the client's two unordered idioms",
  notes: [
    "One process reads a stream that is already full; 1,000 keys, the handler does nothing.",
    "Measured in the middle of the run: when all lanes are there, from 10 % to 90 % of the events. readyMs is how long it took until then.",
    "One round of the first case runs beforehand and does not count.",
    "The idioms read with one consumer and keep no order once anything fails, is redelivered or runs in a second process.",
    "With 1,024 lanes only some 640 have a key at all, since there are 1,000 keys.",
  ],
  async run(options) {
    await using server = await startTestServer();
    const rows: Row[] = [];
    for (const [index, one] of (options.quick ? QUICK : FULL).entries()) {
      rows.push(...(await runCase(server, one, index === 0 ? 1 : 0, options)));
    }
    return { rows, versions: { "nats-server": server.version } };
  },
};

async function runCase(
  server: TestServer,
  one: Case,
  warmUpRounds: number,
  options: BenchmarkOptions,
): Promise<Row[]> {
  const { lanes, maxAckPending } = one;
  const messages = sized(one.messages, options, 500);
  options.onProgress(`consume: storing ${messages} events in ${lanes} lanes`);
  const sequence = keySequence({ keys: KEYS, messages, distribution: "uniform", seed: options.seed });
  const stream = await makeStream(server, { lanes, keys: KEYS, sequence });
  const rows = await compare(
    {
      name: `consume, no-op, ${lanes} lanes`,
      subjects: maxAckPending.map((pending) =>
        contestant(stream, lanekeeperReader({ maxAckPending: pending, concurrency: 1_000 })),
      ),
      references: [contestant(stream, forAwaitReader), contestant(stream, callbackReader)],
      warmUpRounds,
    },
    options,
  );
  await deleteStream(stream);
  return rows;
}

function contestant(stream: BenchStream, reader: Reader): Contestant {
  return { name: reader.name, run: () => readTrial(reader, stream, { type: "middle" }) };
}
