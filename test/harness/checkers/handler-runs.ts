import type { HistoryRecord } from "../history-record.js";

/** One handler run, from its start to its end or its process's death. */
export interface HandlerRun {
  readonly process: string;
  readonly run: number;
  readonly group: string;
  readonly key: string;
  readonly seq: number;
  readonly lane: number;
  readonly attempt: number;
  readonly data: unknown;
  readonly startMs: number;
  /** Infinity while it runs. */
  readonly endMs: number;
  /** `died`: its process did, inside it. `open`: it runs on as far as the history goes. */
  readonly outcome: "handled" | "failed" | "died" | "open";
}

/** Every run of the history, in order of start. */
export function handlerRuns(history: readonly HistoryRecord[]): HandlerRun[] {
  const deaths = deathTimes(history);
  const ends = new Map<string, { atMs: number; outcome: "handled" | "failed" }>();
  for (const record of history) {
    if (record.kind !== "handler-end") continue;
    ends.set(`${record.process} ${record.run}`, { atMs: record.atMs, outcome: record.outcome });
  }
  const runs: HandlerRun[] = [];
  for (const record of history) {
    if (record.kind !== "handler-start") continue;
    const end = ends.get(`${record.process} ${record.run}`);
    const died = deaths.get(record.process);
    runs.push({
      process: record.process,
      run: record.run,
      group: record.group,
      key: record.key,
      seq: record.seq,
      lane: record.lane,
      attempt: record.attempt,
      data: record.data,
      startMs: record.atMs,
      // A process may still write a start between the kill's record and its death.
      endMs: end?.atMs ?? (died === undefined ? Number.POSITIVE_INFINITY : Math.max(died, record.atMs)),
      outcome: end?.outcome ?? (died === undefined ? "open" : "died"),
    });
  }
  return runs.sort((a, b) => a.startMs - b.startMs);
}

/** The same, by group and key; each list in order of start. */
export function runsByKey(history: readonly HistoryRecord[]): HandlerRun[][] {
  const lists = new Map<string, HandlerRun[]>();
  for (const run of handlerRuns(history)) {
    const name = JSON.stringify([run.group, run.key]);
    const list = lists.get(name);
    if (list === undefined) lists.set(name, [run]);
    else list.push(run);
  }
  return [...lists.values()];
}

/** When each process died: at its kill, whichever record tells of it first. */
function deathTimes(history: readonly HistoryRecord[]): Map<string, number> {
  const deaths = new Map<string, number>();
  for (const record of history) {
    if (record.kind !== "killed" && record.kind !== "exited") continue;
    deaths.set(record.about, Math.min(deaths.get(record.about) ?? Number.POSITIVE_INFINITY, record.atMs));
  }
  return deaths;
}
