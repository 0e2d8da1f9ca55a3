import { setTimeout as sleep } from "node:timers/promises";
import { monotonicMs } from "../workload/bench-event.js";
import { startTeam, type TeamOptions } from "../workload/worker-team.js";
import { checkRecords } from "./check-records.js";
import { lostOf } from "./checked-handler.js";
import { cpuMicrosOfAll } from "./cpu.js";
import type { Trial } from "./trial.js";

/**
 * Has several processes read a full stream, and measures for `windowMs`, `warmUpMs` after they have all started.
 * A stream that was read before that is measured from 10 % to 90 %, and `readBeforeWindow` says so.
 *
 * @throws when an event was lost.
 */
export async function teamTrial(
  options: TeamOptions,
  { warmUpMs, windowMs }: { warmUpMs: number; windowMs: number },
): Promise<Trial> {
  const { stream } = options;
  await using team = await startTeam(options);
  const pids = team.workers.map(({ pid }) => pid);
  const serverPids = stream.server.nodes.flatMap(({ pid }) => pid ?? []);
  const mark = () => ({ at: monotonicMs(), cpu: cpuMicrosOfAll(pids), server: cpuMicrosOfAll(serverPids) });
  await sleep(warmUpMs);
  const from = mark();
  await sleep(windowMs);
  const to = mark();
  await Promise.all(team.workers.map((worker) => worker.stop()));
  const records = team.workers.map((worker) => ({ records: worker.records() }));
  const order = checkRecords(records, stream.keys);
  const lost = lostOf(order, stream.messages, await team.unsettled());
  await team.remove();
  if (lost !== undefined) throw new Error(lost);
  const ends = records
    .flatMap((one) => one.records)
    .flatMap(({ type, at }) => (type === "end" ? [at] : []))
    .sort((a, b) => a - b);
  const messages = ends.filter((at) => at >= from.at && at < to.at).length;
  const orderFaults = order.faults;
  // The stream was read before the window: what is left to say is how fast its middle was, start-up CPU included.
  if (messages === 0) {
    const middle = middleOf(ends);
    const share = middle.messages / ends.length;
    return { ...middle, cpuMicros: (to.cpu ?? Number.NaN) * share, serverCpuMicros: undefined, orderFaults };
  }
  return {
    messages,
    seconds: (to.at - from.at) / 1_000,
    cpuMicros: difference(from.cpu, to.cpu) ?? Number.NaN,
    serverCpuMicros: difference(from.server, to.server),
    orderFaults,
  };
}

/** From when 10 % had ended to when 90 % had. */
function middleOf(ends: readonly number[]): Pick<Trial, "messages" | "seconds" | "details"> {
  const first = Math.floor(ends.length * 0.1);
  const last = Math.floor(ends.length * 0.9);
  const [from, to] = [ends[first], ends[last]];
  if (from === undefined || to === undefined || last === first) throw new Error("no event was handled");
  return { messages: last - first, seconds: (to - from) / 1_000, details: { readBeforeWindow: 1 } };
}

function difference(from: number | undefined, to: number | undefined): number | undefined {
  return from === undefined || to === undefined ? undefined : to - from;
}
