import type { HistoryEntry, HistoryRecord } from "../harness/history-record.js";
import { wallStart } from "./sim-process.js";
import type { Timeline } from "./timeline.js";

/** The history of a simulated deployment, in memory; the same records as those of real processes. */
export class SimHistory {
  readonly records: HistoryRecord[] = [];
  /** When the signal of a run was aborted, by process and run. */
  readonly aborts = new Map<string, number>();
  readonly #timeline: Timeline;
  readonly #counters = new Map<string, number>();
  readonly #runs = new Map<string, number>();
  readonly #tries = new Map<number, number>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  add(process: string, entry: HistoryEntry): void {
    const n = (this.#counters.get(process) ?? 0) + 1;
    this.#counters.set(process, n);
    const { now } = this.#timeline;
    this.records.push({ process, n, atMs: now, wallMs: wallStart + now, ...entry });
  }

  /** A handler starts; returns its number within the process. */
  startRun(
    process: string,
    of: { group: string; key: string; seq: number; lane: number; attempt: number; data: unknown },
  ): number {
    const run = (this.#runs.get(process) ?? 0) + 1;
    this.#runs.set(process, run);
    this.#tries.set(of.seq, this.triesOf(of.seq) + 1);
    this.add(process, { kind: "handler-start", run, ...of });
    return run;
  }

  /** Handler starts of an event so far, in any process. */
  triesOf(seq: number): number {
    return this.#tries.get(seq) ?? 0;
  }

  aborted(process: string, run: number): void {
    this.aborts.set(`${process} ${run}`, this.#timeline.now);
  }
}
