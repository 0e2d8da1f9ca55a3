import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare, isWanted } from "../measure/compare.js";
import { Latencies } from "../measure/latency.js";
import { liveTrial } from "../measure/live-trial.js";
import { median } from "../measure/median.js";
import type { Row } from "../measure/row.js";
import type { Contestant, Trial } from "../measure/trial.js";
import { callbackReader } from "../subjects/callback-reader.js";
import { forAwaitReader } from "../subjects/for-await-reader.js";
import { laneCallbacks } from "../subjects/lane-callbacks.js";
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
const STEADY_CASE = "latency, 1,000/s";
const LOAD_CASE = "latency, 70 % of the maximum";
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
    "A process of its own publishes at a steady rate without acks, the same for all; an event's time runs from when it was meant to be sent to its handler start, so that whoever falls behind shows it. The first 20 % do not count. p50Ms, p99Ms and p999Ms are medians over the rounds; sentLateP50Ms and sentLateP99Ms are how late the publisher itself was, which is part of the times of all.",
    "64 lanes, 1,000 keys, a handler that does nothing, publisher, server and reader on the same machine: no network is in these figures.",
    "64 consumers with a callback that acks: what so many consumers cost without anything done for order.",
    "The maximum is measured in the same run with the publisher going as fast as it can, and warms everybody up; 70 % of the slowest subject's is the rate for all.",
    "In a quick run a round has some 1,200 times at 1,000/s and some 7,000 at 70 %: few of them lie beyond p99.9.",
  ],
  async run(options) {
    if (![STEADY_CASE, LOAD_CASE].some((name) => isWanted(name, options))) return { rows: [] };
    await using server = await startTestServer();
    using publisher = await startSteadyPublisher();
    const scene = { server, publisher, options };
    const readers = [256, ...(options.quick ? [] : [1])].map((maxAckPending) =>
      lanekeeperReader({ maxAckPending, concurrency: 1_000 }),
    );
    const references = [
      forAwaitReader,
      laneCallbacks(LANES, 256),
      ...(options.quick ? [] : [callbackReader]),
    ];
    // Asked even where one rate alone is wanted: nothing is to be measured while it is still cold.
    const maximum = await slowestMaximum(scene, [...readers, ...references]);
    const rates = [
      { perSecond: STEADY, seconds: options.quick ? 1.5 : 12, name: STEADY_CASE },
      {
        perSecond: Math.round(maximum * LOAD),
        seconds: options.quick ? 0.7 : 5,
        name: `${LOAD_CASE}, ${Math.round(maximum * LOAD)}/s`,
      },
    ];
    const rows: Row[] = [];
    for (const rate of rates) {
      const contestant = (reader: Reader): Contestant => ({
        name: reader.name,
        run: () => timed(scene, reader, sized(rate.perSecond * rate.seconds, options, 100), rate.perSecond),
      });
      rows.push(
        ...(await compare(
          {
            name: rate.name,
            subjects: readers.map(contestant),
            references: references.map(contestant),
          },
          options,
        )),
      );
    }
    return { rows, versions: { "nats-server": server.version } };
  },
};

/** The median of three runs of each reader, one in a quick run, and of those the lowest: events per second. */
async function slowestMaximum(scene: Scene, readers: readonly Reader[]): Promise<number> {
  const { options } = scene;
  const messages = sized(options.quick ? 15_000 : 100_000, options, 500);
  const maxima: number[] = [];
  for (const reader of readers) {
    options.onProgress(`latency: the maximum of ${reader.name}`);
    // What is cold takes several times as long.
    await timed(scene, reader, Math.ceil(messages / 3));
    const rates: number[] = [];
    for (let round = 0; round < (options.quick ? 1 : 3); round++) {
      const trial = await timed(scene, reader, messages);
      rates.push(trial.messages / trial.seconds);
    }
    options.onProgress(`latency: ${Math.round(median(rates))}/s`);
    maxima.push(median(rates));
  }
  return Math.min(...maxima);
}

async function timed(scene: Scene, reader: Reader, messages: number, perSecond?: number): Promise<Trial> {
  const { server, publisher, options } = scene;
  const sequence: SequenceOptions = { keys: KEYS, messages, distribution: "uniform", seed: options.seed };
  const stream = await makeStream(server, { lanes: LANES, keys: KEYS });
  const latencies = new Latencies();
  const uncounted = Math.floor(messages * WARM_UP_SHARE);
  let seen = 0;
  const trial = await liveTrial({
    reader,
    stream,
    publisher,
    sequence,
    uncounted,
    ...(perSecond === undefined ? {} : { perSecond }),
    onStart({ at }) {
      if (++seen > uncounted) latencies.record(monotonicMs() - at);
    },
  });
  await deleteStream(stream);
  const [p50Ms = 0, p99Ms = 0, p999Ms = 0] = [50, 99, 99.9].map((percent) => latencies.percentile(percent));
  return { ...trial, details: { p50Ms, p99Ms, p999Ms, ...trial.details } };
}
