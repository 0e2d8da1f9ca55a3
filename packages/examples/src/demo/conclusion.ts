import { MODE_TITLES } from "./modes.js";
import { eventsPerSecond } from "./results-table.js";
import type { ModeResult } from "./run-mode.js";
import { formatCount, formatEvents } from "./terminal.js";

/** What the table shows, in words that follow from its numbers. */
export function conclusion(results: readonly ModeResult[], ruled: boolean): string[] {
  const slow = results.find((result) => result.mode === "one-at-a-time");
  const lines = results.flatMap((result) => [
    `${MODE_TITLES[result.mode]}: ${speed(result, slow)}, and ${order(result)}.`,
    ...damage(result, ruled),
  ]);
  if (results.some((result) => result.cut)) {
    lines.push("Where time was up, the numbers are those of the events handled (--max-seconds).");
  }
  return [
    ...lines,
    "",
    "An order fault is an event whose handler began before an earlier event of its key was",
    "done; a duplicate is one that was handled again.",
  ];
}

function speed(result: ModeResult, slow: ModeResult | undefined): string {
  if (result === slow) return "every event waited for all before it";
  const own = eventsPerSecond(result);
  const base = slow === undefined ? 0 : eventsPerSecond(slow);
  return base === 0 ? `${formatCount(Math.round(own))} events/s` : `${(own / base).toFixed(1)} times as fast`;
}

function order(result: ModeResult): string {
  if (result.orderFaults === 0) return "every key's events kept their order";
  return `${formatEvents(result.orderFaults)} overtook another of the same key`;
}

/** What a wrong order has done to the rows. */
function damage(result: ModeResult, ruled: boolean): string[] {
  if (!ruled || result.broken === 0) return [];
  const line = `  ${formatEvents(result.broken)} broke a rule or came too late to be applied`;
  return result.example === undefined ? [`${line}.`] : [`${line}, such as:`, `    ${result.example}`];
}
