import { setTimeout as sleep } from "node:timers/promises";
import { laneOf } from "@lanekeeper/partitioner";
import { monotonicMs } from "../workload/bench-event.js";
import type { BenchStream } from "../workload/bench-stream.js";
import type { BenchWorker } from "../workload/bench-worker.js";
import { keyName, type SequenceOptions } from "../workload/key-sequence.js";
import type { SteadyPublisher } from "../workload/steady-publisher.js";
import { startTeam, type TeamSubject } from "../workload/worker-team.js";
import { checkRecords, openRuns } from "./check-records.js";
import { lostOf } from "./checked-handler.js";
import { cpuMicrosOfAll } from "./cpu.js";
import { median } from "./median.js";
import type { RunRecord } from "./run-records.js";
import type { Trial } from "./trial.js";

/** What happens to the worker: SIGKILL, SIGSTOP without a SIGCONT, or its own graceful end. */
export type Ending = "kill" | "freeze" | "graceful";

export interface FailoverOptions {
  readonly ending: Ending;
  readonly subject: TeamSubject;
  /** Empty. */
  readonly stream: BenchStream;
  readonly publisher: SteadyPublisher;
  readonly sequence: SequenceOptions;
  readonly perSecond: number;
  /** How long both workers run under load before one ends. */
  readonly leadMs: number;
  readonly handlerMs: number;
  /** How long to wait for the end, once everything is published. */
  readonly drainMs: number;
}

/**
 * Two worker processes share the lanes under steady publishing; one ends, and each of its lanes is watched for the
 * next handler start by the other.
 *
 * The lanes watched are those it owned. The recipe owns none: of it, those in which one of its handlers was running,
 * or all when none was. Details: `medianMs` and `longestMs` over these lanes, from the signal or the request;
 * `leftWaiting`, how many events nobody had acked when `drainMs` had passed after the last one was published.
 *
 * @throws when an event was lost, or no watched lane went on.
 */
export async function failoverTrial(options: FailoverOptions): Promise<Trial> {
  const { stream, subject, publisher, sequence, perSecond, handlerMs } = options;
  const handler = { type: "sleep", amount: handlerMs } as const;
  await using team = await startTeam({ stream, subject, processes: 2, handler, buffered: 1 });
  const [victim, survivor] = team.workers;
  if (victim === undefined || survivor === undefined) throw new Error("there are two workers");
  const serverPids = stream.server.nodes.flatMap(({ pid }) => pid ?? []);
  const cpuFrom = cpuMicrosOfAll([survivor.pid]);
  const serverFrom = cpuMicrosOfAll(serverPids);
  const published = publisher.publish(stream, sequence, perSecond);
  published.catch(() => {});
  await sleep(options.leadMs);
  const owned = await victim.lanes();
  const endedAt = monotonicMs();
  await end(victim, options.ending);
  await published;
  const leftWaiting = await team.drained(options.drainMs);
  const cpuTo = cpuMicrosOfAll([survivor.pid]);
  const serverTo = cpuMicrosOfAll(serverPids);
  await survivor.stop();
  victim[Symbol.dispose]();

  const left = victim.records();
  const taken = survivor.records();
  const order = checkRecords(
    [options.ending === "graceful" ? { records: left } : { records: left, endedAt }, { records: taken }],
    sequence.keys,
  );
  const lost = lostOf(order, sequence.messages, leftWaiting);
  if (lost !== undefined) throw new Error(lost);
  const watched = owned.length > 0 ? owned : lanesInHand(left, endedAt, stream);
  const gaps = gapsAfter(endedAt, taken, watched, stream);
  const starts = [...left, ...taken].map(({ at }) => at);
  return {
    messages: order.started,
    seconds: (latest(starts) - earliest(starts)) / 1_000,
    cpuMicros: cpuFrom === undefined || cpuTo === undefined ? Number.NaN : cpuTo - cpuFrom,
    serverCpuMicros: serverFrom === undefined || serverTo === undefined ? undefined : serverTo - serverFrom,
    orderFaults: order.faults,
    details: {
      medianMs: median(gaps),
      longestMs: latest(gaps),
      lanesWatched: gaps.length,
      handledAgain: order.again,
      leftWaiting,
    },
  };
}

async function end(victim: BenchWorker, ending: Ending): Promise<void> {
  if (ending === "graceful") return await victim.stop();
  victim.signal(ending === "kill" ? "SIGKILL" : "SIGSTOP");
}

function lanesInHand(records: readonly RunRecord[], at: number, stream: BenchStream): readonly number[] {
  const running = openRuns(
    records.filter((record) => record.at <= at),
    at,
  );
  const lanes = new Set(running.map(({ key }) => laneOfKey(key, stream)));
  return lanes.size > 0 ? [...lanes] : Array.from({ length: stream.layout.lanes }, (_, lane) => lane);
}

/** Milliseconds until the other worker's next start in each lane. */
function gapsAfter(
  at: number,
  taken: readonly RunRecord[],
  lanes: readonly number[],
  stream: BenchStream,
): number[] {
  const next = new Map<number, number>();
  for (const record of taken) {
    const lane = laneOfKey(record.key, stream);
    if (record.type === "start" && record.at >= at && !next.has(lane)) next.set(lane, record.at - at);
  }
  // A lane without any later event proves nothing either way.
  const gaps = lanes.flatMap((lane) => next.get(lane) ?? []);
  if (gaps.length === 0) throw new Error("no lane of the ended worker went on");
  return gaps;
}

function laneOfKey(key: number, { layout }: BenchStream): number {
  return laneOf(keyName(key), layout.lanes, layout.hash);
}

function latest(values: readonly number[]): number {
  return values.reduce((one, other) => Math.max(one, other), Number.NEGATIVE_INFINITY);
}

function earliest(values: readonly number[]): number {
  return values.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
}
