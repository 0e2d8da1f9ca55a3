import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openLanes } from "@lanekeeper/core";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { recipeConsumers } from "../subjects/lane-recipe.js";
import {
  addConsumers,
  consumerName,
  type PlainConsumer,
  removeConsumers,
} from "../subjects/plain-consumer.js";
import type { BenchEvents } from "./bench-event.js";
import type { BenchStream } from "./bench-stream.js";
import { BenchWorker, type BenchWorkerOptions } from "./bench-worker.js";

const BALANCED_MS = 60_000;
const LOOK_MS = 50;

/** Who handles the events. */
export type TeamSubject =
  | {
      readonly type: "lanekeeper";
      readonly maxAckPending: number;
      readonly concurrency: number;
      readonly leaseMs?: number;
    }
  | { readonly type: "recipe"; readonly ackWaitMs?: number };

export interface TeamOptions {
  readonly stream: BenchStream;
  readonly subject: TeamSubject;
  readonly processes: number;
  readonly handler: BenchWorkerOptions["handler"];
  readonly buffered: number;
}

/** Several worker processes of one group, or of one set of the recipe's consumers. */
export interface WorkerTeam extends AsyncDisposable {
  readonly workers: readonly BenchWorker[];
  /** Events that nobody has acked. */
  unsettled(): Promise<number>;
  /** Removes what the group left on the server, once its processes are gone. */
  remove(): Promise<void>;
  /** Waits until all events are acked, for so long at most, and says how many are not. */
  drained(timeoutMs: number): Promise<number>;
}

let groups = 0;

/** Starts the processes and waits until the lanes are shared out evenly. Disposing kills what still runs. */
export async function startTeam(options: TeamOptions): Promise<WorkerTeam> {
  const { stream, subject, processes } = options;
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-bench-"));
  const connection = await connect({ servers: [...stream.server.urls] });
  const workers: BenchWorker[] = [];
  const dispose = async () => {
    for (const worker of workers) worker[Symbol.dispose]();
    await connection.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const { described, unsettled, remove } = await subjectOn(connection, stream, subject);
    const start = (index: number) =>
      BenchWorker.start({
        servers: stream.server.urls,
        stream: stream.name,
        subject: described,
        handler: options.handler,
        file: join(folder, `worker-${index}`),
        buffered: options.buffered,
      }).then((worker) => workers.push(worker));
    await Promise.all(Array.from({ length: processes }, (_, index) => start(index)));
    if (subject.type === "lanekeeper") await balanced(workers, stream.layout.lanes);
    return {
      workers,
      unsettled,
      remove,
      async drained(timeoutMs) {
        const deadline = performance.now() + timeoutMs;
        for (;;) {
          const left = await unsettled();
          if (left === 0 || performance.now() > deadline) return left;
          await sleep(LOOK_MS);
        }
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function subjectOn(
  connection: NatsConnection,
  stream: BenchStream,
  subject: TeamSubject,
): Promise<{
  described: BenchWorkerOptions["subject"];
  unsettled: () => Promise<number>;
  remove: () => Promise<void>;
}> {
  if (subject.type === "lanekeeper") {
    const lanes = await openLanes<BenchEvents>(connection, { stream: stream.name, create: stream.create });
    const group = `team-${++groups}`;
    return {
      described: { ...subject, create: stream.create, group },
      async unsettled() {
        const { pending, inFlight } = await lanes.group(group).status();
        return pending + inFlight;
      },
      remove: () => lanes.group(group).delete(),
    };
  }
  const manager = await jetstreamManager(connection);
  const consumers: readonly PlainConsumer[] = recipeConsumers(stream, consumerName()).map((consumer) => ({
    ...consumer,
    ...(subject.ackWaitMs === undefined ? {} : { ackWaitMs: subject.ackWaitMs }),
  }));
  await addConsumers(manager, stream.name, consumers);
  return {
    described: { type: "recipe", consumers },
    async unsettled() {
      const infos = await Promise.all(
        consumers.map(({ durable }) => manager.consumers.info(stream.name, durable)),
      );
      return infos.reduce((sum, info) => sum + info.num_pending + info.num_ack_pending, 0);
    },
    async remove() {
      await removeConsumers(manager, stream.name, consumers);
    },
  };
}

async function balanced(workers: readonly BenchWorker[], lanes: number): Promise<void> {
  const fair = Math.floor(lanes / workers.length);
  await until(
    async () => {
      const counts = (await Promise.all(workers.map((worker) => worker.lanes()))).map(({ length }) => length);
      return counts.reduce((sum, count) => sum + count, 0) === lanes && Math.min(...counts) >= fair;
    },
    BALANCED_MS,
    "the lanes to be shared out",
  );
}

async function until(reached: () => Promise<boolean>, timeoutMs: number, what: string): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await reached())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await sleep(LOOK_MS);
  }
}
