import { type ChildProgram, startProgram } from "./child-program.js";
import type { History } from "./history.js";
import type { WorkerProgramOptions } from "./program-options.js";

/** What a worker process reports of `LaneWorker.status()`. */
export interface ReportedStatus {
  readonly healthy: boolean;
  readonly error?: { readonly code: string; readonly message: string };
  readonly lanes: readonly number[];
  readonly inFlight: number;
  readonly oldestHandler?: { readonly key: string; readonly ageMs: number };
  readonly eventLoopLagMs: number;
}

export interface WorkerProcess extends ChildProgram {
  status(timeoutMs?: number): Promise<ReportedStatus>;
}

/**
 * Starts a process that runs one `work()` with the options given, and resolves once it is a live member.
 * SIGTERM closes it as an application would: worker, lanes, connection, exit 0.
 */
export async function startWorkerProcess(
  history: History,
  options: Omit<WorkerProgramOptions, "process" | "historyFolder"> & { name: string },
): Promise<WorkerProcess> {
  const child = await startProgram("worker", options, history);
  return Object.assign(child, {
    status: async (timeoutMs?: number) => (await child.report(timeoutMs)) as ReportedStatus,
  });
}
