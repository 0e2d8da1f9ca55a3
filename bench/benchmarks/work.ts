import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare } from "../measure/compare.js";
import { hotKeyTrial } from "../measure/hot-key-trial.js";
import { readTrial } from "../measure/read-trial.js";
import type { Row } from "../measure/row.js";
import type { Contestant } from "../measure/trial.js";
import { laneRecipe } from "../subjects/lane-recipe.js";
import { lanekeeperReader } from "../subjects/lanekeeper-reader.js";
import type { Reader } from "../subjects/reader.js";
import { type BenchStream, deleteStream, makeStream } from "../workload/bench-stream.js";
import { type KeyDistribution, keySequence, largestShare } from "../workload/key-sequence.js";
import { sleepWork } from "../workload/sleep-work.js";
import { type SteadyPublisher, startSteadyPublisher } from "../workload/steady-publisher.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

const KEYS = 1_000;
const LANES = 64;
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
    "Lanekeeper: 64 lanes, maxAckPending 256, concurrency 1,000. The recipe: a durable consumer with MaxAckPending 1 per lane, read by a `for await` loop each, 16 and 64 lanes.",
    "The ideal is keys ÷ handler time for uniform keys, or the rate of a handler that does nothing, measured in the same run, where that is lower. A timer of 1 ms in Node.js takes longer than 1 ms.",
    "Zipf keys, already stored: the most frequent key has 13 % of the events, and what is behind a full lane waits for it. Zipf keys, live: another process publishes so that the most frequent key is offered 105 % of what one key can do; hotKeyShareOfLimit is what it got of 1 ÷ handler time, and othersExcessP99Ms how long other keys' events waited beyond the end of their own key's last event.",
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
  const messages = sized(options.quick ? 50_000 : 300_000, options, 2_000);
  options.onProgress(`work: storing ${messages} events, ${distribution} keys, twice`);
  const sequence = keySequence({ keys: KEYS, messages, distribution, seed: options.seed });
  const lanes64 = await makeStream(server, { lanes: LANES, keys: KEYS, sequence });
  const lanes16 = await makeStream(server, { lanes: 16, keys: KEYS, sequence });
  const lanekeeper = lanekeeperReader({
    maxAckPending: 256,
    concurrency: CONCURRENCY,
    name: "lanekeeper, maxAckPending 256",
  });
  const noOp = await noOpRate(lanekeeper, lanes64, options);
  const rows: Row[] = [];
  for (const ms of options.quick ? QUICK_MS : FULL_MS) {
    const window = {
      type: "timed",
      warmUpMs: sized(options.quick ? 200 : 500, options) + ms,
      windowMs: sized(options.quick ? 400 : 2_000, options, 50) + 2 * ms,
    } as const;
    const contestant = (reader: Reader, stream: BenchStream): Contestant => ({
      name: reader.name,
      run: () => readTrial(reader, stream, window, sleepWork(ms)),
    });
    const compared = await compare(
      {
        name: `work, ${ms} ms, ${distribution} keys`,
        subjects: [contestant(lanekeeper, lanes64)],
        references: [contestant(laneRecipe(16), lanes16), contestant(laneRecipe(64), lanes64)],
        ...(distribution === "uniform" ? { ideal: () => Math.min((KEYS * 1_000) / ms, noOp) } : {}),
      },
      options,
    );
    rows.push(...compared);
  }
  await deleteStream(lanes64);
  await deleteStream(lanes16);
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
  const seconds = options.quick ? 1.5 : 5;
  const messages = sized(perSecond * seconds, options, 500);
  const sequence = { keys: KEYS, messages, distribution: "zipf", seed: options.seed } as const;
  const contestant = (reader: Reader): Contestant => ({
    name: reader.name,
    run: async () => {
      const stream = await makeStream(server, { lanes: LANES, keys: KEYS });
      const trial = await hotKeyTrial({ reader, stream, publisher, sequence, perSecond }, HOT_KEY_MS);
      await deleteStream(stream);
      return trial;
    },
  });
  return await compare(
    {
      name: `work, ${HOT_KEY_MS} ms, zipf keys, live at ${perSecond}/s`,
      subjects: [contestant(lanekeeperReader({ maxAckPending: 256, concurrency: CONCURRENCY }))],
      references: [contestant(laneRecipe(64))],
    },
    options,
  );
}
