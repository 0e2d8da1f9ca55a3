import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare } from "../measure/compare.js";
import { liveTrial } from "../measure/live-trial.js";
import { between, takeMark } from "../measure/mark.js";
import { OrderCheck } from "../measure/order-check.js";
import type { Work } from "../measure/read-trial.js";
import type { Row } from "../measure/row.js";
import type { Trial } from "../measure/trial.js";
import { runInMemory } from "../subjects/in-memory.js";
import { lanekeeperReader } from "../subjects/lanekeeper-reader.js";
import { type BenchData, EventMaker } from "../workload/bench-event.js";
import { deleteStream, makeStream } from "../workload/bench-stream.js";
import { keySequence, type SequenceOptions } from "../workload/key-sequence.js";
import { randomDurations } from "../workload/random-work.js";
import { type SteadyPublisher, startSteadyPublisher } from "../workload/steady-publisher.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

/** Few, since keys bound what runs at once: each lane is a consumer, which costs the server. */
const LANES = 8;
const CONCURRENCY = 100;
const UP_TO_MS = 5;
const MESSAGES = 10_000;
/** Few keys take long: a quick run gives them fewer events. */
const QUICK_MESSAGES_OF_FEW = 200;
const FEW_KEYS = 10;

/** Seconds for 10,000 messages as published by Confluent for its parallel consumer, on its machine. */
const PUBLISHED: ReadonlyMap<number, number> = new Map([
  [1, 26.7],
  [2, 13.6],
  [5, 5.9],
  [10, 3.3],
  [50, 2.2],
  [100, 2.18],
  [1_000, 2.06],
  [10_000, 2.13],
]);

export const keys: Benchmark = {
  name: "keys",
  summary: "Confluent's table: 10,000 messages, 0 to 5 ms of work, concurrency 100, 1 to 10,000 keys",
  notes: [
    "10,000 events published at once by another process to a worker that waits for them, 8 lanes, maxAckPending 256, concurrency 100; each handler waits a random whole number of milliseconds from 0 to 5, the same for all subjects. From the first handler start to the last handler end.",
    "The reference runs the same handlers under the same rules from memory, without messaging: what Node.js's timers make of it. The ideal is the arithmetic one: the longest key, or all work divided by 100.",
    "confluentSeconds is what Confluent published for its parallel consumer, for 10,000 messages, on its own machine, in Java: to compare shapes, not machines.",
    "A quick run has 200 messages for 1 to 10 keys; confluentSeconds then still speaks of 10,000.",
  ],
  async run(options) {
    await using server = await startTestServer();
    using publisher = await startSteadyPublisher();
    const rows: Row[] = [];
    for (const [count, confluentSeconds] of PUBLISHED) {
      rows.push(...(await runCase({ server, publisher }, count, confluentSeconds, options)));
    }
    return { rows, versions: { "nats-server": server.version } };
  },
};

async function runCase(
  { server, publisher }: { server: TestServer; publisher: SteadyPublisher },
  count: number,
  confluentSeconds: number,
  options: BenchmarkOptions,
): Promise<Row[]> {
  const full = options.quick && count <= FEW_KEYS ? QUICK_MESSAGES_OF_FEW : MESSAGES;
  const messages = sized(full, options, 50);
  const sequence: SequenceOptions = { keys: count, messages, distribution: "uniform", seed: options.seed };
  const durations = randomDurations(messages, UP_TO_MS, options.seed + 1);
  const maker = new EventMaker(count);
  const events = Array.from(keySequence(sequence), (key) => maker.next(key));
  const msOf = durationsByEvent(events, durations, count);
  const work: Work = (data) => {
    const ms = msOf(data);
    return ms === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
  };
  const reader = lanekeeperReader({ maxAckPending: 256, concurrency: CONCURRENCY, name: "lanekeeper" });
  const inSeconds = (trial: Trial): Trial => ({
    ...trial,
    details: { ...trial.details, seconds: trial.seconds, confluentSeconds },
  });
  return await compare(
    {
      name: `keys, ${count.toLocaleString("en")}, ${messages.toLocaleString("en")} messages`,
      subjects: [
        {
          name: reader.name,
          run: async () => {
            const stream = await makeStream(server, { lanes: LANES, keys: count });
            const trial = await liveTrial({ reader, stream, publisher, sequence, work });
            await deleteStream(stream);
            return inSeconds(trial);
          },
        },
      ],
      references: [{ name: "in memory", run: async () => inSeconds(await inMemory(events, count, work)) }],
      ideal: () => (messages * 1_000) / idealMs(events, durations, count),
    },
    options,
  );
}

async function inMemory(events: readonly BenchData[], count: number, work: Work): Promise<Trial> {
  const order = new OrderCheck(count);
  const from = takeMark(0, []);
  await runInMemory(events, CONCURRENCY, (data) => {
    order.start(data.k, data.n);
    return work(data).then(() => order.end(data.k));
  });
  return between(from, takeMark(order.ended, []), order.faults);
}

/** How long an event's handler waits, found by its key and place. */
function durationsByEvent(
  events: readonly BenchData[],
  durations: Uint8Array,
  count: number,
): (data: BenchData) => number {
  const byKey: number[][] = Array.from({ length: count }, () => []);
  for (const [index, { k }] of events.entries()) byKey[k]?.push(durations[index] ?? 0);
  return ({ k, n }) => byKey[k]?.[n - 1] ?? 0;
}

function idealMs(events: readonly BenchData[], durations: Uint8Array, count: number): number {
  const perKey = new Float64Array(count);
  for (const [index, { k }] of events.entries()) perKey[k] = (perKey[k] ?? 0) + (durations[index] ?? 0);
  const all = perKey.reduce((sum, ms) => sum + ms, 0);
  return Math.max(
    all / CONCURRENCY,
    perKey.reduce((longest, ms) => Math.max(longest, ms), 0),
  );
}
