import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare, isWanted } from "../measure/compare.js";
import type { Row } from "../measure/row.js";
import { teamTrial } from "../measure/team-trial.js";
import type { Contestant } from "../measure/trial.js";
import { makeStream } from "../workload/bench-stream.js";
import { keySequence } from "../workload/key-sequence.js";
import type { TeamOptions, TeamSubject } from "../workload/worker-team.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

const KEYS = 1_000;
const LANES = 64;
const CONCURRENCY = 100;
const HASH_ROUNDS = 2_000;

interface Setting {
  readonly name: string;
  readonly nodes: 1 | 3;
  readonly syncAlways: boolean;
}

const SETTINGS: readonly Setting[] = [
  { name: "R1", nodes: 1, syncAlways: false },
  { name: "R1, sync always", nodes: 1, syncAlways: true },
  { name: "R3", nodes: 3, syncAlways: false },
  { name: "R3, sync always", nodes: 3, syncAlways: true },
];

interface Handler {
  readonly name: string;
  readonly handler: TeamOptions["handler"];
  /** For how many a quick run has time. */
  readonly quickProcesses: readonly number[];
}

const HANDLERS: readonly Handler[] = [
  { name: "CPU-bound", handler: { type: "cpu", amount: HASH_ROUNDS }, quickProcesses: [1, 2] },
  { name: "20 ms", handler: { type: "sleep", amount: 20 }, quickProcesses: [] },
];

export const scale: Benchmark = {
  name: "scale",
  summary: "1, 2 and 4 worker processes, CPU-bound and waiting handlers, one server and three, sync always",
  notes: [
    "Worker processes of one group read a stream that is already full; measured when all run and the lanes are shared out. 64 lanes, 1,000 keys, maxAckPending 256, concurrency 100 in each process. Order is checked over all processes together.",
    `The CPU-bound handler is ${HASH_ROUNDS.toLocaleString("en")} rounds of PBKDF2 on the event loop: a fixed amount of work, not of time.`,
    "The recipe: each process reads all 64 durable consumers with MaxAckPending 1, and the server arbitrates.",
    "More processes cannot be faster than the machine has cores, and the server needs some of them too. R3 is three servers on the same machine and disk: what it costs, not what it is like over a network.",
    "speedup is beside the same subject with one process. A quick run has R1 without sync always and CPU-bound handlers in 1 and 2 processes only.",
  ],
  async run(options) {
    const rows: Row[] = [];
    let version = "";
    const settings = options.quick ? SETTINGS.slice(0, 1) : SETTINGS;
    for (const setting of settings) {
      if (casesOf(setting, options).length === 0) continue;
      const folder = mkdtempSync(join(tmpdir(), "lanekeeper-bench-store-"));
      try {
        await using server = await startTestServer({
          nodes: setting.nodes,
          ...(setting.syncAlways ? { config: ({ name }) => syncAlways(join(folder, name)) } : {}),
        });
        version = server.version;
        rows.push(...(await onServer(server, setting, options)));
      } finally {
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      }
    }
    return { rows: withSpeedup(rows), versions: { "nats-server": version } };
  },
};

/** Which handlers in how many processes are wanted on a server of this kind. */
function casesOf(setting: Setting, options: BenchmarkOptions) {
  return HANDLERS.flatMap(({ name: handlerName, handler, quickProcesses }) =>
    (options.quick ? quickProcesses : [1, 2, 4]).map((processes) => ({
      name: `scale, ${setting.name}, ${handlerName}, ${processes} ${processes === 1 ? "process" : "processes"}`,
      handler,
      processes,
    })),
  ).filter(({ name }) => isWanted(name, options));
}

async function onServer(server: TestServer, setting: Setting, options: BenchmarkOptions): Promise<Row[]> {
  // Storing takes long where every write is synced, and nobody reads much more than this then.
  const full = setting.syncAlways ? 100_000 : 300_000;
  const messages = sized(options.quick ? 15_000 : full, options, 1_000);
  options.onProgress(`scale: storing ${messages} events, ${setting.name}`);
  const sequence = keySequence({ keys: KEYS, messages, distribution: "uniform", seed: options.seed });
  const stream = await makeStream(server, {
    lanes: LANES,
    keys: KEYS,
    sequence,
    streamConfig: { num_replicas: setting.nodes },
  });
  const rows: Row[] = [];
  for (const { name, handler, processes } of casesOf(setting, options)) {
    const shrunk = handler.type === "cpu" ? { ...handler, amount: sized(handler.amount, options) } : handler;
    const contestant = (named: string, subject: TeamSubject): Contestant =>
      inTeam(named, { stream, subject, processes, handler: shrunk, buffered: 4_096 }, options);
    const compared = await compare(
      {
        name,
        subjects: [
          contestant("lanekeeper", { type: "lanekeeper", maxAckPending: 256, concurrency: CONCURRENCY }),
        ],
        references: [contestant("recipe, 64 lanes with MaxAckPending 1", { type: "recipe" })],
      },
      options,
    );
    rows.push(...compared);
  }
  return rows;
}

function inTeam(name: string, team: TeamOptions, options: BenchmarkOptions): Contestant {
  const window = {
    // By then the first events are in hand everywhere: getting them costs more than handling a few.
    warmUpMs: sized(options.quick ? 600 : 1_000, options, 20),
    windowMs: sized(options.quick ? 500 : 3_000, options, 100),
  };
  return { name, run: () => teamTrial(team, window) };
}

/** Adds how many times faster than one process it is, where one process was measured. */
function withSpeedup(rows: readonly Row[]): Row[] {
  const base = (row: Row) => row.name.slice(0, row.name.lastIndexOf(","));
  return rows.map((row) => {
    const one = rows.find((other) => other.name === `${base(row)}, 1 process`);
    if (one === undefined) return row;
    return {
      ...row,
      details: { ...row.details, speedup: twoDigits(row.msgsPerSecond / one.msgsPerSecond) },
      referenceDetails: {
        ...row.referenceDetails,
        speedup: twoDigits(row.referenceMsgsPerSecond / one.referenceMsgsPerSecond),
      },
    };
  });
}

function twoDigits(value: number): number {
  return Math.round(value * 100) / 100;
}

/** The whole block, because one given here replaces the test server's own. */
function syncAlways(storeDir: string): string {
  return `jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: always }`;
}
