import { pbkdf2Sync } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { openLanes } from "@lanekeeper/core";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { RunRecorder } from "../measure/run-records.js";
import { readLanes } from "../subjects/lane-recipe.js";
import type { Handle } from "../subjects/reader.js";
import { type BenchEvents, monotonicMs } from "../workload/bench-event.js";
import type { BenchWorkerOptions, WorkerAnswer, WorkerRequest } from "../workload/bench-worker.js";

interface Running {
  lanes(): readonly number[];
  stop(): Promise<void>;
}

process.once("disconnect", () => process.exit(1));
main(JSON.parse(process.argv[2] ?? "{}")).catch((error: unknown) => {
  tell({ type: "failed", reason: error instanceof Error ? error.message : String(error) });
  process.exitCode = 1;
  process.disconnect();
});

async function main(options: BenchWorkerOptions): Promise<void> {
  const recorder = new RunRecorder(options.file, options.buffered);
  const work = workOf(options.handler);
  const handle: Handle = async ({ k, n }) => {
    recorder.record({ type: "start", key: k, n, at: monotonicMs() });
    await work();
    recorder.record({ type: "end", key: k, n, at: monotonicMs() });
  };
  const connection = await connect({ servers: [...options.servers] });
  const running = await start(connection, options, handle);
  process.on("message", (request: WorkerRequest) => {
    if (request === "lanes") return tell({ type: "lanes", lanes: running.lanes() });
    void running.stop().then(async () => {
      await connection.close();
      recorder[Symbol.dispose]();
      tell({ type: "stopped" });
      process.removeAllListeners("disconnect");
      process.disconnect();
    });
  });
  tell({ type: "ready" });
}

async function start(
  connection: NatsConnection,
  { stream, subject }: BenchWorkerOptions,
  handle: Handle,
): Promise<Running> {
  if (subject.type === "recipe") {
    const { messages, ended } = await readLanes(connection, stream, subject.consumers, handle);
    return {
      lanes: () => [],
      async stop() {
        await Promise.all(messages.map((one) => one.close()));
        await ended;
        await connection.flush();
      },
    };
  }
  const { create, group, maxAckPending, concurrency, leaseMs } = subject;
  const lanes = await openLanes<BenchEvents>(connection, { stream, create });
  const worker = await lanes.work(
    { group, maxAckPending, concurrency, ...(leaseMs === undefined ? {} : { leaseMs }) },
    ({ data }) => handle(data),
  );
  return { lanes: () => worker.lanes(), stop: () => lanes.close() };
}

/** The same work for every subject: a fixed amount, not a fixed time, where it is for the CPU. */
function workOf({ type, amount }: BenchWorkerOptions["handler"]): () => Promise<unknown> | undefined {
  if (type === "sleep") return () => sleep(amount);
  return () => {
    pbkdf2Sync("benchmark", "salt", amount, 32, "sha256");
    return undefined;
  };
}

function tell(answer: WorkerAnswer): void {
  process.send?.(answer);
}
