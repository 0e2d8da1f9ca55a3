import { type RunResult, simulate } from "./simulate.js";

/** What a run of many seeds found. */
export interface SeedsResult {
  readonly seeds: number;
  readonly failed: readonly RunResult[];
  /** Overlaps that the design states as what physics leaves. */
  readonly statedOverlaps: number;
  readonly handlerRuns: number;
  readonly virtualMs: number;
  readonly realMs: number;
}

/** Runs `count` seeds from `first` on, or as many as fit into `budgetMs`. At most 20 failures are kept. */
export async function runSeeds(
  first: number,
  count: number,
  budgetMs = Number.POSITIVE_INFINITY,
): Promise<SeedsResult> {
  const began = performance.now();
  const failed: RunResult[] = [];
  let seeds = 0;
  let statedOverlaps = 0;
  let handlerRuns = 0;
  let virtualMs = 0;
  while (seeds < count && performance.now() - began < budgetMs) {
    const result = await simulate(first + seeds++);
    statedOverlaps += result.statedOverlaps;
    virtualMs += result.virtualMs;
    for (const { kind } of result.history) if (kind === "handler-start") handlerRuns++;
    if (result.faults.length > 0 && failed.length < 20) failed.push(result);
  }
  return { seeds, failed, statedOverlaps, handlerRuns, virtualMs, realMs: performance.now() - began };
}

/** One failed seed in words. */
export function describeFailure({ seed, scenario, faults }: RunResult): string {
  const { assignment, retention, replicas, maxAckPending } = scenario;
  const world = `${assignment}, ${retention}, R${replicas}, maxAckPending ${maxAckPending}`;
  const lines = faults.slice(0, 3).map(({ invariant, text }) => `    ${invariant}: ${text}`);
  return [`  seed ${seed} (${world}): ${faults.length} faults`, ...lines].join("\n");
}
