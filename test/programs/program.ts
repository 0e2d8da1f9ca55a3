import { LanekeeperError, type Lanes, openLanes } from "@lanekeeper/core";
import { connect } from "@nats-io/transport-node";
import { type HistoryRecorder, openHistoryRecorder } from "../harness/history-recorder.js";
import { notificationEntry } from "../harness/notification-entry.js";
import type { ProgramOptions } from "../harness/program-options.js";

/** What a program works with; closes in the order an application would. */
export interface Program extends AsyncDisposable {
  readonly lanes: Lanes<Record<string, unknown>>;
  readonly recorder: HistoryRecorder;
}

/** The options the parent gave, as JSON in the first argument. */
export function programOptions<O extends ProgramOptions>(): O {
  const [, , json] = process.argv;
  if (json === undefined || process.send === undefined) {
    throw new Error("started by the test harness only: its options are the first argument, as JSON");
  }
  return JSON.parse(json) as O;
}

/** Connects, opens the lanes and the history. Notifications about the lanes go into the history too. */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  // The parent is gone: nobody wants the results, and nothing may be left running.
  process.once("disconnect", exitAsOrphan);
  const recorder = openHistoryRecorder(options.historyFolder, options.process);
  const connection = await connect({
    servers: options.servers,
    name: options.process,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    // A proxy must not be gone around by what a cluster advertises.
    ignoreClusterUpdates: true,
  });
  const lanes = await openLanes(connection, {
    stream: options.stream,
    ...(options.create === undefined ? {} : { create: options.create }),
    onNotification: (notification) => recorder.record(notificationEntry(notification)),
  });
  return {
    lanes,
    recorder,
    async [Symbol.asyncDispose]() {
      await lanes.close();
      await connection.close();
      recorder[Symbol.dispose]();
      process.removeListener("disconnect", exitAsOrphan);
      // Nothing may hold the process now: that it ends by itself is part of what is tested.
      if (process.connected) process.disconnect();
    },
  };
}

/** Tells the parent that it may go on, and answers its questions from now on. */
export function announceReady(report: () => unknown): void {
  process.on("message", () => process.send?.(report()));
  process.send?.("ready");
}

/** What JSON can carry of an error. */
export function describeError(error: unknown): { message: string; code?: string } {
  if (LanekeeperError.is(error)) return { message: error.message, code: error.code };
  return { message: error instanceof Error ? error.message : String(error) };
}

function exitAsOrphan(): void {
  process.exit(3);
}
