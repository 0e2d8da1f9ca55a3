import { readFileSync } from "node:fs";
import { startTestServer } from "@lanekeeper/core/testing";
import { checked, lostOf } from "../measure/checked-handler.js";
import { compare, isWanted } from "../measure/compare.js";
import { between, type Mark, takeMark } from "../measure/mark.js";
import { OrderCheck } from "../measure/order-check.js";
import { Progress } from "../measure/progress.js";
import { readTrial, type Work } from "../measure/read-trial.js";
import type { Row } from "../measure/row.js";
import type { Trial } from "../measure/trial.js";
import { fillQueue, type GroupmqShape } from "../subjects/groupmq.js";
import { lanekeeperReader } from "../subjects/lanekeeper-reader.js";
import { type BenchData, EventMaker } from "../workload/bench-event.js";
import { deleteStream, makeStream } from "../workload/bench-stream.js";
import { keySequence } from "../workload/key-sequence.js";
import { findRedis, type RedisServer, startRedis } from "../workload/redis-server.js";
import { sleepWork } from "../workload/sleep-work.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

const KEYS = 1_000;
const LANES = 16;
/** How many times as many events Lanekeeper reads. */
const LONGER = 3;

/** The best were among these, whatever the handler, of many that were tried on two cores. */
const QUICK_SHAPES: readonly GroupmqShape[] = [
  { workers: 4, concurrency: 64 },
  { workers: 8, concurrency: 32 },
  { workers: 16, concurrency: 16 },
];
const FULL_SHAPES: readonly GroupmqShape[] = [
  { workers: 1, concurrency: 64 },
  { workers: 1, concurrency: 256 },
  ...QUICK_SHAPES,
  { workers: 16, concurrency: 64 },
  { workers: 32, concurrency: 32 },
];

const WORKLOADS: readonly { name: string; work?: Work }[] = [
  { name: "no-op" },
  { name: "2 ms", work: sleepWork(2) },
  { name: "20 ms", work: sleepWork(20) },
];

export const peers: Benchmark = {
  name: "peers",
  summary: "beside groupmq on Redis, where a redis-server is found",
  notes: [
    "1,000 uniform keys, events stored beforehand; one process reads all of them, measured from 10 % to 90 %. Lanekeeper: 16 lanes, maxAckPending 256, concurrency 1,000; it reads three times as many events, so that both are measured for about as long.",
    "groupmq: one group per key, several workers in the one process, as many and with the concurrency that was best in the same run (1 to 32 workers, 64 to 1,024 handlers in all; a quick run tries the three shapes that were best before); its own redis-server with an append-only file, synced every second, no snapshots. A full and an emptying queue are its normal state; its adding of jobs is not measured.",
    "redis-server is taken from REDIS_SERVER_BIN or the PATH and never installed.",
  ],
  async run(options) {
    const workloads = WORKLOADS.filter(({ name }) => isWanted(caseOf(name), options));
    if (workloads.length === 0) return { rows: [] };
    const found = await findRedis();
    if (found === undefined) {
      return {
        rows: [],
        skipped: [
          "peers was not run: no redis-server that runs is on the PATH, and REDIS_SERVER_BIN names none. Install Redis or set it to compare with groupmq.",
        ],
      };
    }
    await using server = await startTestServer();
    await using redis = await startRedis(found.path);
    const messages = sized(options.quick ? 10_000 : 60_000, options, 500);
    const sequence = keySequence({
      keys: KEYS,
      messages: LONGER * messages,
      distribution: "uniform",
      seed: options.seed,
    });
    const maker = new EventMaker(KEYS);
    const events = Array.from(sequence.slice(0, messages), (key) => maker.next(key));
    const stream = await makeStream(server, { lanes: LANES, keys: KEYS, sequence });
    const reader = lanekeeperReader({ maxAckPending: 256, concurrency: 1_000 });
    const rows: Row[] = [];
    for (const { name, work } of workloads) {
      const shape = await bestShape(redis, events.slice(0, messages / 2), work, options);
      const compared = await compare(
        {
          name: caseOf(name),
          subjects: [{ name: reader.name, run: () => readTrial(reader, stream, { type: "middle" }, work) }],
          references: [
            {
              name: `groupmq, ${shape.workers} workers with concurrency ${shape.concurrency}`,
              run: () => groupmqTrial(redis, events, shape, work),
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

function caseOf(workload: string): string {
  return `peers, ${workload}`;
}

async function bestShape(
  redis: RedisServer,
  events: readonly BenchData[],
  work: Work | undefined,
  options: BenchmarkOptions,
): Promise<GroupmqShape> {
  let best: { shape: GroupmqShape; rate: number } | undefined;
  for (const shape of options.quick ? QUICK_SHAPES : FULL_SHAPES) {
    const { messages, seconds } = await groupmqTrial(redis, events, shape, work);
    const rate = messages / seconds;
    options.onProgress(
      `peers: groupmq, ${shape.workers} workers with concurrency ${shape.concurrency}: ${Math.round(rate)}/s`,
    );
    if (best === undefined || rate > best.rate) best = { shape, rate };
  }
  if (best === undefined) throw new Error("there is no shape to try");
  return best.shape;
}

async function groupmqTrial(
  redis: RedisServer,
  events: readonly BenchData[],
  shape: GroupmqShape,
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
  const running = queue.read(shape, checked(order, progress, work));
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
