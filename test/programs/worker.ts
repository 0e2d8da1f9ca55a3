import type { LaneEvent } from "@lanekeeper/core";
import type { WorkerProgramOptions } from "../harness/program-options.js";
import { actFor, carryOut, fieldOf } from "./handler-act.js";
import { announceReady, describeError, programOptions, startProgram } from "./program.js";

const options = programOptions<WorkerProgramOptions>();
await using program = await startProgram(options);
const { lanes, recorder } = program;
const { group } = options.work;
let runs = 0;

const worker = await lanes.work({ name: options.process, ...options.work }, async (event, context) => {
  runs += 1;
  const run = runs;
  const { key, seq, lane, attempt } = event;
  recorder.record({
    kind: "handler-start",
    run,
    group,
    key,
    seq,
    lane,
    attempt,
    data: kept(event, context.fence),
  });
  context.signal.addEventListener("abort", () => {
    recorder.record({
      kind: "note",
      text: "signal aborted",
      data: { run, key, seq, ...describeError(context.signal.reason) },
    });
  });
  try {
    await carryOut(actFor(options.handler ?? [], event), event, context.signal, recorder);
  } catch (error) {
    const { message } = describeError(error);
    recorder.record({ kind: "handler-end", run, group, key, seq, outcome: "failed", error: message });
    throw error;
  }
  recorder.record({ kind: "handler-end", run, group, key, seq, outcome: "handled" });
});

const terminated = new Promise<void>((resolve) => process.once("SIGTERM", () => resolve()));
announceReady(() => {
  const { error, ...status } = worker.status();
  return error === undefined ? status : { ...status, error: describeError(error) };
});
const reason = await Promise.race([worker.closed, terminated]);
if (reason === undefined) {
  await worker.close(options.graceMs === undefined ? {} : { graceMs: options.graceMs });
} else if (reason.type !== "closed") {
  console.error(`the worker ended: ${reason.type}, ${reason.error.code}: ${reason.error.message}`);
  recorder.record({
    kind: "note",
    text: "worker ended",
    data: { type: reason.type, ...describeError(reason.error) },
  });
  process.exitCode = 1;
}

function kept(
  event: LaneEvent<Record<string, unknown>>,
  fence: { token: number; incarnation: string },
): Record<string, unknown> {
  const fields = (options.keep ?? ["n"]).map((name) => [name, fieldOf(event.data, name)]);
  return { ...Object.fromEntries(fields), fence: fence.token, incarnation: fence.incarnation };
}
