import { setImmediate as nextTurn } from "node:timers/promises";
import { laneSubject } from "@lanekeeper/partitioner";
import { connect } from "@nats-io/transport-node";
import { Latencies } from "../measure/latency.js";
import { EVENT_TYPE, EventMaker, monotonicMs } from "../workload/bench-event.js";
import { keyName, keySequence } from "../workload/key-sequence.js";
import type { Lateness, PublishOrder, PublishReport } from "../workload/steady-publisher.js";

/** Events between two looks at whether the server has read what was sent. */
const FLUSH_EVERY = 2_000;
/** It sleeps for this long at least: at high rates events go out in small batches, as a busy process's do. */
const SLEEP_MS = 0.5;

process.once("disconnect", () => process.exit(0));
process.on("message", (order: PublishOrder) => {
  publish(order).then(
    (late) => process.send?.({ type: "published", late } satisfies PublishReport),
    (error: unknown) => process.send?.({ type: "failed", reason: String(error) } satisfies PublishReport),
  );
});
process.send?.({ type: "ready" } satisfies PublishReport);

/**
 * Publishes each event when its time has come, never earlier; late ones follow at once. `at` is when it was meant to
 * be sent, so that a publisher or server that falls behind shows as latency instead of being left out.
 */
async function publish(order: PublishOrder): Promise<Lateness> {
  const { servers, layout, sequence, perSecond, uncounted } = order;
  const keys = keySequence(sequence);
  const subjects = Array.from({ length: sequence.keys }, (_, key) =>
    laneSubject(layout, { key: keyName(key), type: EVENT_TYPE }),
  );
  const maker = new EventMaker(sequence.keys);
  const late = new Latencies();
  const connection = await connect({ servers: [...servers] });
  try {
    const startedAt = monotonicMs();
    for (const [index, key] of keys.entries()) {
      const at = perSecond === undefined ? monotonicMs() : startedAt + (index * 1_000) / perSecond;
      let now = monotonicMs();
      if (at > now) {
        await pause(at - now);
        now = monotonicMs();
      }
      if (perSecond !== undefined && index >= uncounted) late.record(now - at);
      connection.publish(subjects[key] ?? "", JSON.stringify(maker.next(key, at)));
      if (index % FLUSH_EVERY === FLUSH_EVERY - 1) await connection.flush();
    }
    await connection.flush();
    return late.count === 0
      ? { p50Ms: 0, p99Ms: 0 }
      : { p50Ms: late.percentile(50), p99Ms: late.percentile(99) };
  } finally {
    await connection.close();
  }
}

const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/**
 * Sleeps to within some 0.1 ms, where a timer of Node.js would be late by up to a millisecond. What has been
 * published is on its way before, and what the server sends is read after it.
 */
async function pause(ms: number): Promise<void> {
  await nextTurn();
  Atomics.wait(never, 0, 0, Math.max(ms, SLEEP_MS));
}
