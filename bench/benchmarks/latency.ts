import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare } from "../measure/compare.js";
import { Latencies } from "../measure/latency.js";
import { liveTrial } from "../measure/live-trial.js";
import { median } from "../measure/median.js";
import type { Row } from "../measure/row.js";
import type { Contestant, Trial } from "../measure/trial.js";
import { callbackReader } from "../subjects/callback-reader.js";
import { forAwaitReader } from "../subjects/for-await-reader.js";
import { lanekeeperReader } from "../subjects/lanekeeper-reader.js";
import type { Reader } from "../subjects/reader.js";
import { monotonicMs } from "../workload/bench-event.js";
import { deleteStream, makeStream } from "../workload/bench-stream.js";
import type { SequenceOptions } from "../workload/key-sequence.js";
import { type SteadyPublisher, startSteadyPublisher } from "../workload/steady-publisher.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

const LANES = 64;
const KEYS = 1_000;
const STEADY = 1_000;
const LOAD = 0.7;
/** Its events are sent and handled but not counted: both sides are still getting warm. */
const WARM_UP_SHARE = 0.2;

interface Scene {
  readonly server: TestServer;
  readonly publisher: SteadyPublisher;
  readonly options: BenchmarkOptions;
}

export const latency: Benchmark = {
  name: "latency",
  summary: "from the intended send time to the handler start, at 1,000/s and at 70 % of the maximum",
  notes: [
    "A process of its own publishes at a steady rate without acks, the same for all; an event's time runs from when it was meant to be sent to its handler start, so that whoever falls behind shows it. The first 20 % do not count. p50Ms, p99Ms and p999Ms are medians over the rounds.",
    "64 lanes, 1,000 keys, a handler that does nothing, publisher, server and reader on the same machine: no network is in these figures.",
    "The maximum is measured in the same run with the publisher going as fast as it can; 70 % of the slowest subject's is the rate for all.",
    "In a quick run few events lie beyond p99.9.",
  ],
  async run(options) {
    await using server = await startTestServer();
    using publisher = await startSteadyPublisher();
    const scene = { server, publisher, options };
    const readers = [256, ...(options.quick ? [] : [1])].map((maxAckPending) =>
      lanekeeperReader({ maxAckPending, concurrency: 1_000 }),
    );
    const references = [forAwaitReader, ...(options.quick ? [] : [callbackReader])];
    const steadySeconds = options.quick ? 1.5 : 10;
    const rows = await atRate(scene, readers, references, STEADY, steadySeconds, "1,000/s");
    const maximum = await slowestMaximum(scene, [...readers, ...references]);
    const rate = Math.round(maximum * LOAD);
    const seconds = options.quick ? 0.6 : 4;
    rows.push(...(await atRate(scene, readers, references, rate, seconds, `70 % of the maximum, ${rate}/s`)));
    return { rows, versions: { "nats-server": server.version } };
  },
};

async function atRate(
  scene: Scene,
  subjects: readonly Reader[],
  references: readonly Reader[],
  perSecond: number,
  seconds: number,
  name: string,
): Promise<Row[]> {
  const contestant = (reader: Reader): Contestant => ({
    name: reader.name,
    run: () => timed(scene, reader, sized(perSecond * seconds, scene.options, 100), perSecond),
  });
  return await compare(
    {
      name: `latency, ${name}`,
      subjects: subjects.map(contestant),
      references: references.map(contestant),
    },
    scene.options,
  );
}

/** The median of three runs of each reader, and of those the lowest: events per second. */
async function slowestMaximum(scene: Scene, readers: readonly Reader[]): Promise<number> {
  const messages = sized(scene.options.quick ? 15_000 : 100_000, scene.options, 500);
  const rates = new Map<Reader, number[]>();
  for (let round = 0; round < (scene.options.quick ? 1 : 3); round++) {
    for (const reader of readers) {
      scene.options.onProgress(`latency: the maximum of ${reader.name}`);
      const trial = await timed(scene, reader, messages);
      rates.set(reader, [...(rates.get(reader) ?? []), trial.messages / trial.seconds]);
    }
  }
  return Math.min(...[...rates.values()].map(median));
}

async function timed(scene: Scene, reader: Reader, messages: number, perSecond?: number): Promise<Trial> {
  const { server, publisher, options } = scene;
  const sequence: SequenceOptions = { keys: KEYS, messages, distribution: "uniform", seed: options.seed };
  const stream = await makeStream(server, { lanes: LANES, keys: KEYS });
  const latencies = new Latencies();
  let seen = 0;
  const trial = await liveTrial({
    reader,
    stream,
    publisher,
    sequence,
    ...(perSecond === undefined ? {} : { perSecond }),
    onStart({ at }) {
      if (++seen > messages * WARM_UP_SHARE) latencies.record(monotonicMs() - at);
    },
  });
  await deleteStream(stream);
  const [p50Ms = 0, p99Ms = 0, p999Ms = 0] = [50, 99, 99.9].map((percent) => latencies.percentile(percent));
  return { ...trial, details: { p50Ms, p99Ms, p999Ms } };
}
