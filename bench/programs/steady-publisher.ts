import { setTimeout as sleep } from "node:timers/promises";
import { laneSubject } from "@lanekeeper/partitioner";
import { connect } from "@nats-io/transport-node";
import { EVENT_TYPE, EventMaker, monotonicMs } from "../workload/bench-event.js";
import { keyName, keySequence } from "../workload/key-sequence.js";
import type { PublishOrder, PublishReport } from "../workload/steady-publisher.js";

/** Events between two looks at whether the server has read what was sent. */
const FLUSH_EVERY = 2_000;

process.once("disconnect", () => process.exit(0));
process.on("message", (order: PublishOrder) => {
  publish(order).then(
    () => process.send?.({ type: "published" } satisfies PublishReport),
    (error: unknown) => process.send?.({ type: "failed", reason: String(error) } satisfies PublishReport),
  );
});
process.send?.({ type: "ready" } satisfies PublishReport);

/**
 * Publishes each event when its time has come, never earlier; late ones follow at once. `at` is when it was meant to
 * be sent, so that a publisher or server that falls behind shows as latency instead of being left out.
 */
async function publish({ servers, layout, sequence, perSecond }: PublishOrder): Promise<void> {
  const keys = keySequence(sequence);
  const subjects = Array.from({ length: sequence.keys }, (_, key) =>
    laneSubject(layout, { key: keyName(key), type: EVENT_TYPE }),
  );
  const maker = new EventMaker(sequence.keys);
  const connection = await connect({ servers: [...servers] });
  try {
    const startedAt = monotonicMs();
    for (const [index, key] of keys.entries()) {
      const at = perSecond === undefined ? monotonicMs() : startedAt + (index * 1_000) / perSecond;
      while (at > monotonicMs()) await sleep(1);
      connection.publish(subjects[key] ?? "", JSON.stringify(maker.next(key, at)));
      if (index % FLUSH_EVERY === FLUSH_EVERY - 1) await connection.flush();
    }
    await connection.flush();
  } finally {
    await connection.close();
  }
}
