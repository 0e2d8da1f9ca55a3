import Table from "cli-table3";
import { MODE_TITLES } from "./modes.js";
import type { ModeResult } from "./run-mode.js";
import { formatCount, type Terminal } from "./terminal.js";

/** @param ruled whether the input has a rule that an event can break */
export function resultsTable(
  results: readonly ModeResult[],
  ruled: boolean,
  colors: Terminal["colors"],
): string {
  const table = new Table({
    head: ["mode", "handled", "events/s", "broke a rule", "order faults", "duplicates"].map(colors.bold),
    colAligns: ["left", "right", "right", "right", "right", "right"],
    style: { head: [], border: [], compact: true },
  });
  const faults = (count: number): string => (count === 0 ? colors.green : colors.red)(formatCount(count));
  for (const result of results) {
    table.push([
      MODE_TITLES[result.mode],
      result.cut
        ? `${formatCount(result.handled)} of ${formatCount(result.events)}`
        : formatCount(result.handled),
      formatCount(Math.round(eventsPerSecond(result))),
      ruled ? faults(result.broken) : "no rule",
      faults(result.orderFaults),
      formatCount(result.duplicates),
    ]);
  }
  return table.toString();
}

export function eventsPerSecond(result: ModeResult): number {
  return result.elapsedMs === 0 ? 0 : (result.handled / result.elapsedMs) * 1000;
}
