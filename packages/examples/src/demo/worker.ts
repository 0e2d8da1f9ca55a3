/** One worker process of the demo: does its task until it is told to stop. */
import { openLanes } from "@lanekeeper/core";
import { connect } from "@nats-io/transport-node";
import { baselineWork, type StopWork } from "./baseline-work.js";
import { deliveryHandler } from "./delivery-handler.js";
import { lanekeeperWork } from "./lanekeeper-work.js";
import type { FromWorker, ToWorker, WorkerTask } from "./worker-task.js";

const PROGRESS_INTERVAL_MS = 100;

// Ctrl-C reaches every process of the terminal; the parent decides when its workers end.
process.on("SIGINT", () => {});
// The parent is gone: nobody wants the work any more.
process.on("disconnect", orphaned);

await run(JSON.parse(process.argv[2] ?? "")).then(finish, fail);

async function run(task: WorkerTask): Promise<void> {
  const started = nextMessage("start");
  const stopped = nextMessage("stop");
  const connection = await connect({ servers: task.url });
  // The stream is there, and its layout wins; whichever worker comes first makes the bucket for the lanes' claims.
  const lanes = await openLanes(connection, { stream: task.stream, create: { subject: "demo" } });
  let handlings = 0;
  const handle = deliveryHandler(task, () => handlings++);
  const start = (): Promise<StopWork> => {
    if (task.mode === "lanekeeper") return lanekeeperWork(lanes, task.handlers, handle, fail);
    const { stream, mode: consumer } = task;
    return baselineWork(connection, { stream, consumer, layout: lanes.layout, onError: fail }, handle);
  };
  tell({ type: "ready" });
  await started;
  const timer = setInterval(() => tell({ type: "progress", handlings }), PROGRESS_INTERVAL_MS);
  const stop = await start();
  await stopped;
  await stop();
  clearInterval(timer);
  await lanes.close();
  await connection.drain();
}

/** Resolves when the parent has sent it; both messages are listened for from the beginning, so none is missed. */
function nextMessage(type: ToWorker["type"]): Promise<void> {
  return new Promise((resolve) => {
    const listen = (message: ToWorker): void => {
      if (message.type !== type) return;
      process.off("message", listen);
      resolve();
    };
    process.on("message", listen);
  });
}

function tell(message: FromWorker): void {
  process.send?.(message);
}

function finish(): void {
  process.off("disconnect", orphaned);
  process.disconnect();
}

function fail(error: unknown): void {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.send?.({ type: "failed", message } satisfies FromWorker, () => process.exit(1));
}

function orphaned(): void {
  process.exit(1);
}
