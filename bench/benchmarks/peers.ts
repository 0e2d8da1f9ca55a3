import { readFileSync } from "node:fs";
import { startTestServer } from "@lanekeeper/core/testing";
import { checked, lostOf } from "../measure/checked-handler.js";
import { compare } from "../measure/compare.js";
import { between, type Mark, takeMark } from "../measure/mark.js";
import { OrderCheck } from "../measure/order-check.js";
import { Progress } from "../measure/progress.js";
import { readTrial, type Work } from "../measure/read-trial.js";
import type { Row } from "../measure/row.js";
import type { Trial } from "../measure/trial.js";
import { fillQueue } from "../subjects/groupmq.js";
import { lanekeeperReader } from "../subjects/lanekeeper-reader.js";
import { type BenchData, EventMaker } from "../workload/bench-event.js";
import { deleteStream, makeStream } from "../workload/bench-stream.js";
import { keySequence } from "../workload/key-sequence.js";
import { findRedis, type RedisServer, startRedis } from "../workload/redis-server.js";
import { sleepWork } from "../workload/sleep-work.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

const KEYS = 1_000;
const LANES = 64;
const CONCURRENCIES = [64, 256, 1_000] as const;

const WORKLOADS: readonly { name: string; work?: Work }[] = [
  { name: "no-op" },
  { name: "2 ms", work: sleepWork(2) },
  { name: "20 ms", work: sleepWork(20) },
];

export const peers: Benchmark = {
  name: "peers",
  summary: "beside groupmq on Redis, where a redis-server is found",
  notes: [
    "1,000 uniform keys, events stored beforehand; one process reads all of them, measured from 10 % to 90 %. Lanekeeper: 64 lanes, maxAckPending 256, concurrency 1,000.",
    "groupmq: one group per key, the best of concurrency 64, 256 and 1,000 as found in the same run; its own redis-server with an append-only file, synced every second, no snapshots. A full and an emptying queue are its normal state; its adding of jobs is not measured.",
    "redis-server is taken from REDIS_SERVER_BIN or the PATH and never installed.",
  ],
  async run(options) {
    const found = await findRedis();
    if (found === undefined) {
      return {
        rows: [],
        skipped: [
          "peers was not run: no redis-server on the PATH, and REDIS_SERVER_BIN names none. Install Redis or set it to compare with groupmq.",
        ],
      };
    }
    await using server = await startTestServer();
    await using redis = await startRedis(found.path);
    const messages = sized(options.quick ? 8_000 : 60_000, options, 500);
    const sequence = keySequence({ keys: KEYS, messages, distribution: "uniform", seed: options.seed });
    const maker = new EventMaker(KEYS);
    const events = Array.from(sequence, (key) => maker.next(key));
    const stream = await makeStream(server, { lanes: LANES, keys: KEYS, sequence });
    const reader = lanekeeperReader({ maxAckPending: 256, concurrency: 1_000 });
    const rows: Row[] = [];
    for (const { name, work } of WORKLOADS) {
      const concurrency = await bestConcurrency(redis, events.slice(0, messages / 2), work, options);
      const compared = await compare(
        {
          name: `peers, ${name}`,
          subjects: [{ name: reader.name, run: () => readTrial(reader, stream, { type: "middle" }, work) }],
          references: [
            {
              name: `groupmq, concurrency ${concurrency}`,
              run: () => groupmqTrial(redis, events, concurrency, work),
            },
          ],
        },
        options,
      );
      rows.push(...compared);
    }
    await deleteStream(stream);
    const versions = { "nats-server": server.version, redis: found.version, groupmq: groupmqVersion() };
    return { rows, versions };
  },
};

async function bestConcurrency(
  redis: RedisServer,
  events: readonly BenchData[],
  work: Work | undefined,
  options: BenchmarkOptions,
): Promise<number> {
  let best = { concurrency: 0, rate: 0 };
  for (const concurrency of CONCURRENCIES) {
    options.onProgress(`peers: trying groupmq with concurrency ${concurrency}`);
    const { messages, seconds } = await groupmqTrial(redis, events, concurrency, work);
    if (messages / seconds > best.rate) best = { concurrency, rate: messages / seconds };
  }
  return best.concurrency;
}

async function groupmqTrial(
  redis: RedisServer,
  events: readonly BenchData[],
  concurrency: number,
  work: Work | undefined,
): Promise<Trial> {
  const order = new OrderCheck(KEYS);
  using progress: Progress<Mark> = new Progress(() => takeMark(progress.done, [redis.pid]));
  const queue = await fillQueue(redis.url, events);
  const marks = Promise.all([
    progress.reached(Math.ceil(events.length * 0.1)),
    progress.reached(Math.floor(events.length * 0.9)),
    progress.reached(events.length),
  ]);
  marks.catch(() => {});
  const running = queue.read(concurrency, checked(order, progress, work));
  let unsettled: number;
  try {
    await marks;
  } finally {
    unsettled = (await running.stop()).unsettled;
  }
  const lost = lostOf(order, events.length, unsettled);
  if (lost !== undefined) throw new Error(lost);
  const [from, to] = await marks;
  return between(from, to, order.faults);
}

function groupmqVersion(): string {
  const file = new URL("../../node_modules/groupmq/package.json", import.meta.url);
  const { version }: { version?: unknown } = JSON.parse(readFileSync(file, "utf8"));
  return typeof version === "string" ? version : "unknown";
}
