import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { LaneLayout } from "@lanekeeper/partitioner";
import type { BenchStream } from "./bench-stream.js";
import { childMessage } from "./child-message.js";
import type { SequenceOptions } from "./key-sequence.js";

const PROGRAM = fileURLToPath(new URL("../programs/steady-publisher.js", import.meta.url));
const READY_MS = 30_000;

/** What the publishing process is told. */
export interface PublishOrder {
  readonly servers: readonly string[];
  readonly layout: LaneLayout;
  readonly sequence: SequenceOptions;
  /** Undefined: as fast as it can. */
  readonly perSecond?: number;
  /** So many of the first events do not count in the report. */
  readonly uncounted: number;
}

/** How late events were given to the connection, after they were due; 0 where none was due at any time. */
export interface Lateness {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export type PublishReport =
  | { readonly type: "ready" }
  | { readonly type: "published"; readonly late: Lateness }
  | { readonly type: "failed"; readonly reason: string };

/** A process of its own that publishes at a steady rate, without acks; the same for every subject. */
export interface SteadyPublisher extends Disposable {
  /** Publishes into a stream that is empty. Resolves when the server has read everything. One at a time. */
  publish(
    stream: BenchStream,
    sequence: SequenceOptions,
    perSecond?: number,
    uncounted?: number,
  ): Promise<Lateness>;
}

export async function startSteadyPublisher(): Promise<SteadyPublisher> {
  const child = fork(PROGRAM, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  try {
    await report(child, "ready", READY_MS);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  return {
    async publish(stream, sequence, perSecond, uncounted = 0) {
      const order: PublishOrder = {
        servers: stream.server.urls,
        layout: stream.layout,
        sequence,
        uncounted,
        ...(perSecond === undefined ? {} : { perSecond }),
      };
      const seconds = perSecond === undefined ? 0 : sequence.messages / perSecond;
      const published = report(child, "published", Math.ceil(seconds * 1_000) + READY_MS);
      child.send(order);
      return (await published).late;
    },
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  };
}

async function report<T extends "ready" | "published">(
  child: ChildProcess,
  type: T,
  timeoutMs: number,
): Promise<PublishReport & { type: T }> {
  return await childMessage(
    child,
    (message: PublishReport) => {
      if (message.type === "failed") throw new Error(`the publishing process: ${message.reason}`);
      return isOf(message, type) ? message : undefined;
    },
    timeoutMs,
  );
}

function isOf<T extends PublishReport["type"]>(
  message: PublishReport,
  type: T,
): message is PublishReport & { type: T } {
  return message.type === type;
}
