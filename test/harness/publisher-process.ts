import { type ChildProgram, startProgram } from "./child-program.js";
import type { History } from "./history.js";
import type { PublisherProgramOptions } from "./program-options.js";

/** What a publisher process reports. */
export interface PublishProgress {
  readonly called: number;
  readonly settled: number;
  readonly failed: number;
}

export interface PublisherProcess extends ChildProgram {
  progress(timeoutMs?: number): Promise<PublishProgress>;
}

/** Starts a process that publishes its events, one publisher for all, and exits with 0 once all are settled. */
export async function startPublisherProcess(
  history: History,
  options: Omit<PublisherProgramOptions, "process" | "historyFolder"> & { name: string },
): Promise<PublisherProcess> {
  const child = await startProgram("publisher", options, history);
  return Object.assign(child, {
    progress: async (timeoutMs?: number) => (await child.report(timeoutMs)) as PublishProgress,
  });
}
