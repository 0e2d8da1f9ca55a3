import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { compare } from "../measure/compare.js";
import { type Ending, failoverTrial } from "../measure/failover-trial.js";
import type { Row } from "../measure/row.js";
import type { Contestant } from "../measure/trial.js";
import { deleteStream, makeStream } from "../workload/bench-stream.js";
import type { SequenceOptions } from "../workload/key-sequence.js";
import { type SteadyPublisher, startSteadyPublisher } from "../workload/steady-publisher.js";
import type { TeamSubject } from "../workload/worker-team.js";
import { type Benchmark, type BenchmarkOptions, sized } from "./benchmark.js";

const KEYS = 1_000;
const LANES = 64;
const PER_SECOND = 300;
const HANDLER_MS = 20;
const ENDINGS: Readonly<Record<Ending, string>> = {
  kill: "kill -9",
  freeze: "SIGSTOP",
  graceful: "graceful stop",
};

/** Milliseconds; full runs have both sides' defaults. */
const LEASE = { quick: 1_000, full: 5_000 };
const ACK_WAIT = { quick: 1_000, full: 30_000 };
/** How long events may wait at the end before they are counted as left. */
const DRAIN = { quick: 1_000, full: 45_000 };

export const failover: Benchmark = {
  name: "failover",
  summary: "from kill -9, SIGSTOP and a graceful stop to the next handler start in the lanes that move",
  notes: [
    "Two worker processes, 64 lanes, 1,000 keys, 300 events a second from another process, 20 ms handlers. One worker ends; medianMs and longestMs are over its lanes, from the signal to the next handler start by the other. A lane's next event comes about every 0.2 s, which is part of the time.",
    "The recipe has no owners: of it, the lanes count in which the ended worker was handling an event.",
    "The rate is given, so ratio says only that both kept up, or that one did not; the times are in the details. leftWaiting is how many events were still not acked 45 s after the last was published (quick run: 1 s): a frozen process of the recipe keeps its pull requests, and the server goes on giving it events. A full run has both sides' defaults, leaseMs 5,000 and ack_wait 30 s; a quick run has 1 s for both.",
    "The three endings run at the same time, on streams of their own. A frozen worker is not woken here. Not measured: a machine that is cut off, and replicated servers.",
  ],
  async run(options) {
    await using server = await startTestServer();
    const endings: Ending[] = ["kill", "freeze", "graceful"];
    const rows = await Promise.all(endings.map((ending) => runEnding(server, ending, options)));
    return { rows: rows.flat(), versions: { "nats-server": server.version } };
  },
};

async function runEnding(server: TestServer, ending: Ending, options: BenchmarkOptions): Promise<Row[]> {
  using publisher = await startSteadyPublisher();
  const scale = options.quick ? "quick" : "full";
  const leaseMs = LEASE[scale];
  const ackWaitMs = ACK_WAIT[scale];
  const contestant = (name: string, subject: TeamSubject, outageMs: number): Contestant => ({
    name,
    run: () => oneEnding({ server, publisher, ending, options }, subject, outageMs),
  });
  return await compare(
    {
      name: `failover, ${ENDINGS[ending]}`,
      subjects: [
        contestant(
          `lanekeeper, leaseMs ${leaseMs}`,
          { type: "lanekeeper", maxAckPending: 256, concurrency: 256, leaseMs },
          leaseMs,
        ),
      ],
      references: [
        contestant(`recipe, 64 lanes, ack_wait ${ackWaitMs} ms`, { type: "recipe", ackWaitMs }, ackWaitMs),
      ],
    },
    options,
  );
}

interface Scene {
  readonly server: TestServer;
  readonly publisher: SteadyPublisher;
  readonly ending: Ending;
  readonly options: BenchmarkOptions;
}

async function oneEnding(
  { server, publisher, ending, options }: Scene,
  subject: TeamSubject,
  outageMs: number,
) {
  const leadMs = options.quick ? 500 : 2_000;
  const afterMs = sized(options.quick ? 800 : 3_000, options, 500);
  const totalMs = leadMs + afterMs + (ending === "graceful" ? 0 : outageMs);
  const sequence: SequenceOptions = {
    keys: KEYS,
    messages: Math.round((PER_SECOND * totalMs) / 1_000),
    distribution: "uniform",
    seed: options.seed,
  };
  const stream = await makeStream(server, { lanes: LANES, keys: KEYS });
  const trial = await failoverTrial({
    ending,
    subject,
    stream,
    publisher,
    sequence,
    perSecond: PER_SECOND,
    leadMs,
    handlerMs: HANDLER_MS,
    drainMs: sized(DRAIN[options.quick ? "quick" : "full"], options, 500),
  });
  await deleteStream(stream);
  return trial;
}
