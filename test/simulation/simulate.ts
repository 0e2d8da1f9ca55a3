import { checkComplete } from "../harness/checkers/check-complete.js";
import { checkNoGap } from "../harness/checkers/check-no-gap.js";
import { checkOrder } from "../harness/checkers/check-order.js";
import type { HistoryRecord, StoredEvent } from "../harness/history-record.js";
import { overlapsOf } from "./overlaps.js";
import type { PlantedFault } from "./planted-faults.js";
import { type Scenario, scenarioOf } from "./scenario.js";
import { group, Simulation } from "./simulation.js";

/** One fault of a run, whichever way it was found. */
export interface RunFault {
  readonly invariant: string;
  readonly text: string;
}

export interface RunResult {
  readonly seed: number;
  readonly scenario: Scenario;
  readonly faults: readonly RunFault[];
  /** Overlaps that the design states as what physics leaves. */
  readonly statedOverlaps: number;
  readonly history: readonly HistoryRecord[];
  readonly stored: readonly StoredEvent[];
  readonly virtualMs: number;
  readonly steps: number;
}

/** Runs one seed's world to its end and judges what happened. */
export async function simulate(seed: number, planted?: PlantedFault): Promise<RunResult> {
  const scenario = scenarioOf(seed);
  const simulation = new Simulation(scenario, planted);
  const undo = planted?.patch?.(simulation.server);
  try {
    await simulation.run();
  } finally {
    undo?.();
  }
  const { judge, history, server, timeline } = simulation;
  const records = history.records;
  const from = simulation.settlement.startSeq;
  const stored = server.stream.stored().filter(({ seq }) => seq >= from);
  const { faults: overlaps, stated } = overlapsOf(records, history.aborts);
  const faults: RunFault[] = [
    ...judge.faults.map(({ invariant, text, atMs }) => ({ invariant, text: `${atMs.toFixed(1)}: ${text}` })),
    ...checkOrder(records),
    ...overlaps,
    ...checkNoGap(records, stored),
    ...checkComplete(
      records,
      stored.filter(({ seq }) => !simulation.settlement.waitsForever(seq)),
      [group],
    ).faults.filter(({ seqs: [seq = 0] }) => !simulation.settlement.waitsForever(seq)),
  ];
  const { now: virtualMs, steps } = timeline;
  return { seed, scenario, faults, statedOverlaps: stated, history: records, stored, virtualMs, steps };
}
