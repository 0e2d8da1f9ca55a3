import type { HistoryRecord } from "../history-record.js";
import type { Fault } from "./fault.js";
import { type HandlerRun, runsByKey } from "./handler-runs.js";

/**
 * O6: the fence token that a handler is given never falls for a key, and no two processes are given the same one: a
 * later start under a lower or a shared token comes from a claim that has lapsed. For owned lanes; runs of different
 * incarnations are not compared.
 */
export function checkFence(history: readonly HistoryRecord[]): Fault[] {
  return runsByKey(history).flatMap(fallsOfKey);
}

function fallsOfKey(runs: readonly HandlerRun[]): Fault[] {
  const faults: Fault[] = [];
  const newest = new Map<string, { run: HandlerRun; token: number }>();
  for (const run of runs) {
    const { token, incarnation } = fenceOf(run);
    const before = newest.get(incarnation);
    const sound =
      before === undefined ||
      token > before.token ||
      (token === before.token && run.process === before.run.process);
    if (sound) newest.set(incarnation, { run, token });
    else faults.push(faultOf(before.run, before.token, run, token));
  }
  return faults;
}

function fenceOf({ data }: HandlerRun): { token: number; incarnation: string } {
  const { fence, incarnation } = (data ?? {}) as { fence?: unknown; incarnation?: unknown };
  if (typeof fence !== "number") throw new Error("the history has a handler start without its fence token");
  return { token: fence, incarnation: String(incarnation) };
}

function faultOf(before: HandlerRun, newest: number, run: HandlerRun, token: number): Fault {
  return {
    invariant: "O6",
    key: run.key,
    seqs: [before.seq, run.seq],
    processes: [before.process, run.process],
    atMs: run.startMs,
    text:
      `group ${run.group}, key ${JSON.stringify(run.key)}: seq ${run.seq} started in ${run.process} at ` +
      `${run.startMs.toFixed(3)} with fence token ${token}, after ${before.process} had started seq ${before.seq} with ${newest}`,
  };
}
