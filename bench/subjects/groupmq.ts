import { Queue, Worker } from "groupmq";
import { Redis } from "ioredis";
import type { BenchData } from "../workload/bench-event.js";
import type { Handle } from "./reader.js";

const ADD_AT_ONCE = 500;
const CLOSE_MS = 10_000;

let queues = 0;

/** Workers in one process, and handlers at once in each: more of the former is faster, up to a point. */
export interface GroupmqShape {
  readonly workers: number;
  readonly concurrency: number;
}

export interface RunningQueue {
  /** Ends the workers, says how many jobs are left, and lets go of Redis. @throws what a worker reported. */
  stop(): Promise<{ unsettled: number }>;
}

/** groupmq with one group per key: fills a queue, and reads it with workers of this shape. */
export async function fillQueue(
  url: string,
  events: readonly BenchData[],
): Promise<{ read(shape: GroupmqShape, handle: Handle): RunningQueue; close(): Promise<void> }> {
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  const queue = new Queue<BenchData>({ redis, namespace: `bench-${++queues}` });
  queue.redis.setMaxListeners(0); // Each worker has listeners of its own on it.
  try {
    for (let from = 0; from < events.length; from += ADD_AT_ONCE) {
      // One connection carries the calls in their order, and groupmq orders a group's jobs as they come.
      const some = events.slice(from, from + ADD_AT_ONCE);
      await Promise.all(
        some.map((data, index) => queue.add({ groupId: data.customer, data, orderMs: from + index + 1 })),
      );
    }
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  const close = async () => {
    await queue.close();
    redis.disconnect();
  };
  return {
    close,
    read({ workers, concurrency }, handle) {
      let failure: unknown;
      const start = () => {
        const worker = new Worker<BenchData>({
          queue,
          concurrency,
          handler: async (job) => {
            await handle(job.data);
          },
        });
        worker.on("error", (error: unknown) => {
          failure ??= error;
        });
        worker.run().catch((error: unknown) => {
          failure ??= error;
        });
        return worker;
      };
      const running = Array.from({ length: workers }, start);
      return {
        async stop() {
          await Promise.all(running.map((worker) => worker.close(CLOSE_MS)));
          const { active, waiting, delayed } = await queue.getJobCounts();
          await close();
          if (failure !== undefined) throw failure;
          return { unsettled: active + waiting + delayed };
        },
      };
    },
  };
}
