import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare, isWanted } from "../measure/compare.js";
import { hotKeyTrial } from "../measure/hot-key-trial.js";
import { readTrial } from "../measure/read-trial.js";
import type { Row } from "../measure/row.js";
import type { Contestant } from "../measure/trial.js";
import { chainedReader } from "../subjects/chained-reader.js";
import { laneRecipe } from "../subjects/lane-recipe.js";
import { lanekeeperReader } from "../subjects/lanekeeper-reader.js";
import type { Reader } from "../subjects/reader.js";
import { type BenchStream, deleteStream, makeStream } from "../workload/bench-stream.js";
import { type KeyDistribution, keySequence, largestShare } from "../workload/key-sequence.js";
import { sleepWork } from "../workload/sleep-work.js";
import { type SteadyPublisher, startSteadyPublisher } from "../workload/steady-publisher.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

const KEYS = 1_000;
/** Of the stream that Lanekeeper reads: with maxAckPending above 1 keys bound what runs at once, and not lanes. */
const LANES = 16;
/** The recipe can only have as many events at once as lanes. */
const RECIPE_LANES = 64;
const CONCURRENCY = 1_000;
const FULL_MS = [1, 2, 10, 20, 100] as const;
const QUICK_MS = [2, 20] as const;
const HOT_KEY_MS = 2;
/** The most frequent key gets this much of what one key can do, so that it is always busy and slowly falls behind. */
const HOT_KEY_LOAD = 1.05;

interface Scene {
  readonly server: TestServer;
  readonly options: BenchmarkOptions;
}

export const work: Benchmark = {
  name: "work",
  summary: "handlers that wait 1 to 100 ms, beside the hand-written recipe of one consumer per lane",
  notes: [
    "One process reads a stream that is already full; the handler waits on one timer. Measured for a while once every lane is there.",
    "Lanekeeper: 16 lanes, maxAckPending 256, concurrency 1,000. Keys bound what it runs at once, so that few lanes do, which cost the server less. The recipe: a durable consumer with MaxAckPending 1 per lane, read by a `for await` loop each, 16 and 64 lanes; lanes bound what it runs at once.",
    "The ideal is keys ÷ handler time for uniform keys, or the rate of a handler that does nothing, measured in the same run, where that is lower. A timer of 1 ms in Node.js takes longer than 1 ms.",
    "Zipf keys, already stored: the most frequent key has 13 % of the events, and what is behind a full lane waits for it. Zipf keys, live: another process publishes so that the most frequent key is offered 105 % of what one key can do; hotKeyShareOfLimit is what it got of 1 ÷ handler time, and othersExcessP99Ms how long other keys' events waited beyond the end of their own key's last event.",
    "Beside it the same for chains in memory, which receive the same events from one consumer, ack them and then handle each key's one after the other: 1 ÷ handler time is out of reach, because a timer of 2 ms in Node.js takes longer, and this is how much of it is left in the same run on the same machine. It loses events in a crash and is no way to do it.",
  ],
  async run(options) {
    await using server = await startTestServer();
    using publisher = await startSteadyPublisher();
    const scene = { server, options };
    const rows: Row[] = [];
    for (const distribution of options.quick ? (["uniform"] as const) : (["uniform", "zipf"] as const)) {
      rows.push(...(await storedEvents(scene, distribution)));
    }
    rows.push(...(await hotKey(scene, publisher)));
    return { rows, versions: { "nats-server": server.version } };
  },
};

async function storedEvents({ server, options }: Scene, distribution: KeyDistribution): Promise<Row[]> {
  const named = (ms: number) => `work, ${ms} ms, ${distribution} keys`;
  const times = (options.quick ? QUICK_MS : FULL_MS).filter((ms) => isWanted(named(ms), options));
  if (times.length === 0) return [];
  const messages = sized(options.quick ? 40_000 : 300_000, options, 2_000);
  options.onProgress(`work: storing ${messages} events, ${distribution} keys, twice`);
  const sequence = keySequence({ keys: KEYS, messages, distribution, seed: options.seed });
  const few = await makeStream(server, { lanes: LANES, keys: KEYS, sequence });
  // The recipe does not get far.
  const beginning = sequence.slice(0, Math.ceil(messages / 2));
  const many = await makeStream(server, { lanes: RECIPE_LANES, keys: KEYS, sequence: beginning });
  const lanekeeper = lanekeeperReader({
    maxAckPending: 256,
    concurrency: CONCURRENCY,
    name: "lanekeeper, maxAckPending 256",
  });
  const noOp = await noOpRate(lanekeeper, few, options);
  const rows: Row[] = [];
  for (const ms of times) {
    const window = {
      type: "timed",
      warmUpMs: sized(options.quick ? 150 : 500, options) + ms,
      windowMs: sized(options.quick ? 400 : 2_000, options, 50) + 2 * ms,
    } as const;
    const contestant = (reader: Reader, stream: BenchStream): Contestant => ({
      name: reader.name,
      run: () => readTrial(reader, stream, window, sleepWork(ms)),
    });
    const compared = await compare(
      {
        name: named(ms),
        subjects: [contestant(lanekeeper, few)],
        references: [contestant(laneRecipe(LANES), few), contestant(laneRecipe(RECIPE_LANES), many)],
        ...(distribution === "uniform" ? { ideal: () => Math.min((KEYS * 1_000) / ms, noOp) } : {}),
      },
      options,
    );
    rows.push(...compared);
  }
  await deleteStream(few);
  await deleteStream(many);
  return rows;
}

/** Events per second with a handler that does nothing: the best of the rounds, so that the ideal is not set too low. */
async function noOpRate(reader: Reader, stream: BenchStream, options: BenchmarkOptions): Promise<number> {
  let best = 0;
  for (let round = 0; round < (options.quick ? 1 : options.rounds); round++) {
    options.onProgress(`work: a handler that does nothing, ${reader.name}`);
    const { messages, seconds } = await readTrial(reader, stream, { type: "middle" });
    best = Math.max(best, messages / seconds);
  }
  return best;
}

/** Live publishing in which one key is offered a little more than one key can do. */
async function hotKey({ server, options }: Scene, publisher: SteadyPublisher): Promise<Row[]> {
  const perSecond = Math.round((HOT_KEY_LOAD * 1_000) / HOT_KEY_MS / largestShare(KEYS, "zipf"));
  const seconds = options.quick ? 0.9 : 5;
  const messages = sized(perSecond * seconds, options, 500);
  const sequence = { keys: KEYS, messages, distribution: "zipf", seed: options.seed } as const;
  const contestant = (reader: Reader, lanes = LANES): Contestant => ({
    name: reader.name,
    run: async () => {
      const stream = await makeStream(server, { lanes, keys: KEYS });
      const trial = await hotKeyTrial({ reader, stream, publisher, sequence, perSecond }, HOT_KEY_MS);
      await deleteStream(stream);
      return trial;
    },
  });
  return await compare(
    {
      name: `work, ${HOT_KEY_MS} ms, zipf keys, live at ${perSecond}/s`,
      subjects: [contestant(lanekeeperReader({ maxAckPending: 256, concurrency: CONCURRENCY }))],
      references: [contestant(laneRecipe(RECIPE_LANES), RECIPE_LANES), contestant(chainedReader)],
    },
    options,
  );
}
