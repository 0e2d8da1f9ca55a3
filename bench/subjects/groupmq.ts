import { Queue, Worker } from "groupmq";
import { Redis } from "ioredis";
import type { BenchData } from "../workload/bench-event.js";
import type { Handle } from "./reader.js";

const ADD_AT_ONCE = 500;
const CLOSE_MS = 10_000;

let queues = 0;

export interface RunningQueue {
  /** Ends the worker, says how many jobs are left, and lets go of Redis. */
  stop(): Promise<{ unsettled: number }>;
}

/** groupmq with one group per key: fills a queue, and reads it with so many handlers at once. */
export async function fillQueue(
  url: string,
  events: readonly BenchData[],
): Promise<{ read(concurrency: number, handle: Handle): RunningQueue; close(): Promise<void> }> {
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  const queue = new Queue<BenchData>({ redis, namespace: `bench-${++queues}` });
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
    read(concurrency, handle) {
      const worker = new Worker<BenchData>({
        queue,
        concurrency,
        handler: async (job) => {
          await handle(job.data);
        },
      });
      void worker.run();
      return {
        async stop() {
          await worker.close(CLOSE_MS);
          const { active, waiting, delayed } = await queue.getJobCounts();
          await close();
          return { unsettled: active + waiting + delayed };
        },
      };
    },
  };
}
