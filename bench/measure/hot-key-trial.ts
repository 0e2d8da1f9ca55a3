import { monotonicMs } from "../workload/bench-event.js";
import { sleepWork } from "../workload/sleep-work.js";
import { Latencies } from "./latency.js";
import { type LiveTrialOptions, liveTrial } from "./live-trial.js";
import type { Trial } from "./trial.js";

/** Key 0 is the most frequent one. */
const HOT = 0;

/**
 * A live trial with a handler of `ms`, in which the details tell what became of the most frequent key and of the others.
 *
 * - `hotKeyShareOfLimit`: its events per second between its first and last handler start, of the 1,000 ÷ `ms` that
 *   one key can do.
 * - `othersExcessP99Ms`: 99th percentile, over the other keys' events, of the time from when an event could have run
 *   (it was sent, and the one before it of its key had ended) to when it did.
 */
export async function hotKeyTrial(
  options: Omit<LiveTrialOptions, "work" | "onStart">,
  ms: number,
): Promise<Trial> {
  const wait = sleepWork(ms);
  const freeSince = new Float64Array(options.sequence.keys);
  const excess = new Latencies();
  let hotStarts = 0;
  let hotFirst = 0;
  let hotLast = 0;
  const trial = await liveTrial({
    ...options,
    async work(data) {
      await wait(data);
      freeSince[data.k] = monotonicMs();
    },
    onStart({ k, at }) {
      const now = monotonicMs();
      if (k !== HOT) {
        excess.record(now - Math.max(at, freeSince[k] ?? 0));
        return;
      }
      if (hotStarts++ === 0) hotFirst = now;
      hotLast = now;
    },
  });
  const hotPerSecond = hotStarts < 2 ? 0 : ((hotStarts - 1) * 1_000) / (hotLast - hotFirst);
  return {
    ...trial,
    details: {
      hotKeyShareOfLimit: (hotPerSecond * ms) / 1_000,
      othersExcessP50Ms: excess.percentile(50),
      othersExcessP99Ms: excess.percentile(99),
    },
  };
}
