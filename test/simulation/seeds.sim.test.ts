import { expect, test } from "vitest";
import type { HistoryRecord } from "../harness/history-record.js";
import { describeFailure, runSeeds } from "./run-seeds.js";
import { simulate } from "./simulate.js";

/** As given by `npm run simulate`; without, the seeds of the test command: as many as fit into the budget. */
const given = process.env["SIMULATE_SEEDS"];
const first = Number(process.env["SIMULATE_SEED"] ?? 1);
const budgetMs = given === undefined ? 45_000 : Number.POSITIVE_INFINITY;
const count = given === undefined ? 10_000 : Number(given);
/** What a slow machine has to manage, so that a run that does nothing is not a success. */
const atLeast = Math.min(count, 100);

test("O1 to O6: owned and shared workers keep order on a simulated server, whatever is killed, frozen, cut off, lost or late", async () => {
  const result = await runSeeds(first, count, budgetMs);
  const { seeds, failed, statedOverlaps, handlerRuns, virtualMs, realMs } = result;
  console.log(
    `${seeds} seeds from ${first}: ${failed.length} failed, ${handlerRuns} handler runs, ${statedOverlaps} stated overlaps, ` +
      `${(virtualMs / 60_000).toFixed(0)} virtual minutes in ${(realMs / 1_000).toFixed(1)} s`,
  );
  if (given === "1") printHistory((await simulate(first)).history);
  if (failed.length > 0) throw new Error(`faults in:\n${failed.map(describeFailure).join("\n")}`);
  expect(seeds).toBeGreaterThanOrEqual(atLeast);
}, 86_400_000);

test("the same seed has the same history, byte for byte; another seed another", async () => {
  for (const seed of [2, 5, 11, 23]) {
    const once = JSON.stringify((await simulate(seed)).history);
    const again = JSON.stringify((await simulate(seed)).history);
    expect(again).toBe(once);
    expect(JSON.stringify((await simulate(seed + 1)).history)).not.toBe(once);
  }
});

function printHistory(history: readonly HistoryRecord[]): void {
  for (const { atMs, process, n: _, wallMs: __, ...fact } of history) {
    console.log(`${atMs.toFixed(2)} ${process} ${JSON.stringify(fact)}`);
  }
}
