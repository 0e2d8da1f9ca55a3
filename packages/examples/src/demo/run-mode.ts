import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AckPolicy, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { openDatabase } from "../customer-events/database.js";
import type { Cleanup } from "./cleanup.js";
import { HandlingLog, type HandlingTotals } from "./handling-log.js";
import { MODE_TITLES, type Mode } from "./modes.js";
import { formatCount, formatEvents, type Terminal } from "./terminal.js";
import { WorkerPool } from "./worker-pool.js";
import type { WorkerTask } from "./worker-task.js";

const POLL_MS = 100;

export interface ModeRun {
  /** All but what differs by mode. */
  readonly task: Omit<WorkerTask, "mode" | "database">;
  readonly workers: number;
  readonly lanes: number;
  /** Events in the stream. */
  readonly events: number;
  /** When to stop, in seconds, whether or not all events have been handled. */
  readonly maxSeconds: number;
  /** Where the mode's database is put. */
  readonly folder: string;
}

export interface ModeResult extends HandlingTotals {
  readonly mode: Mode;
  readonly events: number;
  /** Time was up before all events had been handled. */
  readonly cut: boolean;
}

/** Has fresh worker processes handle the whole stream in one mode. */
export async function runMode(
  mode: Mode,
  run: ModeRun,
  connection: NatsConnection,
  terminal: Terminal,
  cleanup: Cleanup,
): Promise<ModeResult> {
  if (mode !== "lanekeeper") await addConsumer(connection, run.task.stream, mode, run.lanes);
  const file = join(run.folder, `${mode}.db`);
  const database = openDatabase(file);
  try {
    const log = new HandlingLog(database);
    const pool = await cleanup.add(new WorkerPool({ ...run.task, mode, database: file }, run.workers));
    await pool.ready();
    const cut = await work(pool, log, run, terminal, MODE_TITLES[mode]);
    const totals = log.totals();
    return { mode, events: run.events, cut, ...totals };
  } finally {
    database.close();
  }
}

/** @returns whether time was up first */
async function work(
  pool: WorkerPool,
  log: HandlingLog,
  run: ModeRun,
  terminal: Terminal,
  title: string,
): Promise<boolean> {
  const line = terminal.progress(title, run.events);
  const endAt = performance.now() + run.maxSeconds * 1000;
  pool.start();
  let done = false;
  while (!done && performance.now() < endAt) {
    await Promise.race([sleep(POLL_MS), pool.failed]);
    line.update(pool.handlings);
    // Handlings include repeated ones: only the log knows whether every event was among them.
    done = pool.handlings >= run.events && log.handled() >= run.events;
  }
  await pool.stop();
  const { handled, elapsedMs } = log.totals();
  const cut = handled < run.events;
  const what = cut ? `${formatCount(handled)} of ${formatEvents(run.events)}` : formatEvents(handled);
  line.finish(
    `${title.padEnd(13)} ${what} in ${(elapsedMs / 1000).toFixed(1)} s${cut ? " (time is up)" : ""}`,
  );
  return cut;
}

async function addConsumer(
  connection: NatsConnection,
  stream: string,
  mode: Exclude<Mode, "lanekeeper">,
  inFlight: number,
): Promise<void> {
  const manager = await jetstreamManager(connection);
  await manager.consumers.add(stream, {
    durable_name: mode,
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: mode === "one-at-a-time" ? 1 : inFlight,
  });
}
