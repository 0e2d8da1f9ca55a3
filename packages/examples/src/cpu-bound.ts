/**
 * Handlers that compute, on worker threads, so that the event loop stays free.
 *
 * A worker has to keep its lease and to confirm its acks, and both need the event loop. A handler that computed on it
 * would stand in their way: after four fifths of the lease its lanes would be fenced. So the handler only hands the work
 * to a thread of the pool, and awaits it. `context.signal` goes with it: when it aborts, the pool ends the thread, in the
 * middle of the computation.
 *
 * `concurrency` is the pool's number of threads, so that events wait in their lanes and not in the pool's queue, where
 * they would use up `handlerTimeoutMs`.
 */
import { availableParallelism } from "node:os";
import { openLanes } from "@lanekeeper/core";
import { connect } from "@nats-io/transport-node";
import { Piscina } from "piscina";
import type { estimate } from "./cpu-bound-task.js";

interface Risks {
  /** Estimates a loan's expected loss from that many simulated lives of it. */
  requested: { loan: number; chance: number; trials: number };
}

const threads = Math.max(availableParallelism(), 2);
const pool = new Piscina<Parameters<typeof estimate>[0], ReturnType<typeof estimate>>({
  filename: new URL("./cpu-bound-task.js", import.meta.url).href,
  name: "estimate",
  maxThreads: threads,
});

const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
const lanes = await openLanes<Risks>(connection, { stream: "RISKS", create: { subject: "risks" } });

await lanes.work(
  {
    group: "estimator",
    concurrency: threads,
    handlerTimeoutMs: 4_000,
    retry: { attempts: 2, initialDelayMs: 100 },
    onExhausted: "drop",
    onNotification: ({ type, key, error }) => {
      if (type === "dropped") console.log(`${key}: gave up, ${error?.code}`);
      if (type === "loop-blocked") console.log("the event loop was blocked");
    },
  },
  async (event, context) => {
    const loss = await pool.run(event.data, { signal: context.signal });
    console.log(`${event.key}: ${event.data.trials} trials, about ${Math.round(loss)}`);
  },
);

const publisher = lanes.publisher();
const request = (key: string, trials: number) =>
  publisher.publish({ key, type: "requested", data: { loan: 10_000, chance: 0.02, trials } });
// Nobody has the time for the first one: its thread is ended at the timeout, and the key goes on.
await request("greedy", 1e15);
await request("greedy", 1e6);
await request("modest", 2e6);
await request("modest", 3e6);

await lanes.group("estimator").caughtUp();
await lanes.close();
await connection.close();
await pool.close();
