import { describe, expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { expectNoFaults } from "./harness/checkers/fault.js";
import { handlerRuns } from "./harness/checkers/handler-runs.js";
import type { HistoryRecord } from "./harness/history-record.js";
import { type LaneScene, startLaneScene } from "./harness/lane-scene.js";
import { missingRealLog, readRealLog } from "./harness/real-logs.js";
import type { WorkerProcess } from "./harness/worker-process.js";

const ACK_WAIT_MS = 2_500;

describe.each(["helpdesk-events.ndjson", "receipt-events.ndjson"])("%s", (name) => {
  const missing = missingRealLog(name);
  test.skipIf(missing)(
    `O1–O4, P1: one of 4 workers killed with -9 and one frozen past ackWait${missing ? ` (${missing})` : ""}`,
    { timeout: 400_000 },
    async () => {
      const log = readRealLog(name);
      await using scene = await startLaneScene({
        ackWaitMs: ACK_WAIT_MS,
        create: { subject: "cases", lanes: 64 },
      });
      // Handlers that take a moment: a process that is stopped has something in hand.
      const handler = [{ act: { type: "succeed" as const, afterMs: 2 } }];
      const [victim, sleeper] = await Promise.all(
        ["killed", "frozen", "steady-1", "steady-2"].map((each) => scene.worker({ name: each, handler })),
      );
      if (victim === undefined || sleeper === undefined) throw new Error("the workers were not started");
      const events = { type: "ndjson" as const, file: log.file, keyField: "case", typeField: "activity" };
      const publisher = await scene.publisher({ name: "publisher", events });

      await scene.settled(log.events.length / 5, 120_000);
      await victim.kill();
      await freezeWithWorkInHand(scene, sleeper);
      const frozenAt = performance.now();
      await awaitCondition(() => performance.now() - frozenAt > ACK_WAIT_MS * 1.5, {
        what: "the freeze to outlast ackWait",
      });
      sleeper.thaw();

      await publisher.finished(120_000);
      await scene.settled(log.events.length, 120_000);
      const { faults, frozenOverlaps, repeats } = await scene.check();
      expectNoFaults(faults);
      // Stated, and told: a worker that was frozen reports each event that another one may have run beside it.
      for (const { inHand } of frozenOverlaps) {
        expect(overlapsToldBy(inHand.process, scene.history.read())).toContain(inHand.seq);
      }
      expect(positionsByCase(scene.history.read())).toEqual(expectedPositions(log.events));
      console.log(`${name}: ${frozenOverlaps.length} stated overlaps, ${repeats} repeats`);
    },
  );
});

/** Freezes a worker inside a handler: without one, the freeze would prove little. */
async function freezeWithWorkInHand({ history }: LaneScene, worker: WorkerProcess): Promise<void> {
  await awaitCondition(
    () => {
      worker.freeze();
      const inHand = handlerRuns(history.read()).filter(
        (run) => run.process === worker.id && run.outcome === "open",
      );
      if (inHand.length > 0) return true;
      worker.thaw();
      return false;
    },
    { what: `${worker.id} to be frozen with a handler in hand`, timeoutMs: 30_000 },
  );
}

/** The events of which a worker notified that they may have overlapped. */
function overlapsToldBy(process: string, history: readonly HistoryRecord[]): number[] {
  return history.flatMap((record) =>
    record.kind === "notification" && record.type === "overlap-possible" && record.process === process
      ? (record.seq ?? [])
      : [],
  );
}

/** Each case's `n`, in the order of first starts. */
function positionsByCase(history: readonly HistoryRecord[]): Map<string, unknown[]> {
  const started = new Set<number>();
  const positions = new Map<string, unknown[]>();
  for (const record of history) {
    if (record.kind !== "handler-start" || started.has(record.seq)) continue;
    started.add(record.seq);
    const { n } = record.data as { n: unknown };
    positions.set(record.key, [...(positions.get(record.key) ?? []), n]);
  }
  return positions;
}

/** From 1, rising by one, as many as the case has. */
function expectedPositions(events: readonly { case: string }[]): Map<string, number[]> {
  const positions = new Map<string, number[]>();
  for (const event of events) {
    const list = positions.get(event.case) ?? [];
    positions.set(event.case, [...list, list.length + 1]);
  }
  return positions;
}
