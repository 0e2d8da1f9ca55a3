import type { Reader } from "../subjects/reader.js";
import type { BenchData } from "../workload/bench-event.js";
import type { BenchStream } from "../workload/bench-stream.js";
import type { SequenceOptions } from "../workload/key-sequence.js";
import type { Lateness, SteadyPublisher } from "../workload/steady-publisher.js";
import { checked, lostOf } from "./checked-handler.js";
import { between, type Mark, takeMark } from "./mark.js";
import { OrderCheck } from "./order-check.js";
import { Progress } from "./progress.js";
import type { Work } from "./read-trial.js";
import type { Trial } from "./trial.js";

export interface LiveTrialOptions {
  readonly reader: Reader;
  /** Empty, and of no further use afterwards. */
  readonly stream: BenchStream;
  readonly publisher: SteadyPublisher;
  readonly sequence: SequenceOptions;
  /** Undefined: as fast as the publisher can. */
  readonly perSecond?: number;
  /** So many of the first events do not count in how late the publisher was. Default 0. */
  readonly uncounted?: number;
  readonly work?: Work;
  /** Called at every handler start. */
  readonly onStart?: (data: BenchData) => void;
}

/**
 * Has a reader wait on an empty stream, publishes to it from another process, and measures from the first handler
 * start to the last handler end. With a rate, the details `sentLateP50Ms` and `sentLateP99Ms` tell how late the
 * publisher gave events to its connection, whoever reads them.
 *
 * @throws when an event was lost.
 */
export async function liveTrial(options: LiveTrialOptions): Promise<Trial> {
  const { reader, stream, publisher, sequence, perSecond, uncounted, work, onStart } = options;
  const serverPids = stream.server.nodes.flatMap(({ pid }) => pid ?? []);
  const order = new OrderCheck(stream.keys);
  using progress: Progress<Mark> = new Progress(() => takeMark(progress.done, serverPids));
  const handle = checked(order, progress, work);
  const running = await reader.start(
    stream,
    onStart === undefined
      ? handle
      : (data) => {
          onStart(data);
          return handle(data);
        },
  );
  let marks: [Mark, Mark];
  let late: Lateness;
  let unsettled: number;
  try {
    const all = Promise.all([progress.first(), progress.reached(sequence.messages)]);
    all.catch(() => {});
    late = await publisher.publish(stream, sequence, perSecond, uncounted);
    marks = await all;
  } finally {
    unsettled = (await running.stop()).unsettled;
  }
  const lost = lostOf(order, sequence.messages, unsettled);
  if (lost !== undefined) throw new Error(lost);
  const sent = { sentLateP50Ms: late.p50Ms, sentLateP99Ms: late.p99Ms };
  return between(...marks, order.faults, perSecond === undefined ? undefined : sent);
}
