import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { CreateLanes } from "@lanekeeper/core";
import { type RunRecord, readRunRecords } from "../measure/run-records.js";
import type { PlainConsumer } from "../subjects/plain-consumer.js";
import { childMessage } from "./child-message.js";

const PROGRAM = fileURLToPath(new URL("../programs/bench-worker.js", import.meta.url));
const READY_MS = 60_000;
const ANSWER_MS = 30_000;

/** What a worker process is started with, as JSON in its first argument. */
export interface BenchWorkerOptions {
  readonly servers: readonly string[];
  readonly stream: string;
  readonly subject:
    | {
        readonly type: "lanekeeper";
        readonly create: CreateLanes;
        readonly group: string;
        readonly maxAckPending: number;
        readonly concurrency: number;
        readonly leaseMs?: number;
      }
    | { readonly type: "recipe"; readonly consumers: readonly PlainConsumer[] };
  /** `cpu`: so many rounds of a hash function, on the event loop. `sleep`: a timer of so many milliseconds. */
  readonly handler: { readonly type: "cpu" | "sleep"; readonly amount: number };
  /** Where the handler runs are recorded. */
  readonly file: string;
  /** See RunRecorder. */
  readonly buffered: number;
}

export type WorkerRequest = "lanes" | "stop";
export type WorkerAnswer =
  | { readonly type: "ready" | "stopped" }
  | { readonly type: "lanes"; readonly lanes: readonly number[] }
  | { readonly type: "failed"; readonly reason: string };

/** A worker in a process of its own. Dispose of it: the process is killed if it still runs, frozen or not. */
export class BenchWorker implements Disposable {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #file: string;

  static async start(options: BenchWorkerOptions): Promise<BenchWorker> {
    const child = fork(PROGRAM, [JSON.stringify(options)], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    try {
      await answer(child, "ready", READY_MS);
      return new BenchWorker(child, options.file);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  private constructor(child: ChildProcess, file: string) {
    if (child.pid === undefined) throw new Error("the worker process has no pid");
    this.pid = child.pid;
    this.#child = child;
    this.#file = file;
  }

  /** The lanes it owns now; none for the recipe, which owns none. */
  async lanes(): Promise<readonly number[]> {
    const answered = answer(this.#child, "lanes", ANSWER_MS);
    this.#child.send("lanes" satisfies WorkerRequest);
    return (await answered).lanes;
  }

  /** Asks for the graceful end; resolves when all its acks are sent and the process is gone. */
  async stop(): Promise<void> {
    const gone = once(this.#child, "exit", { signal: AbortSignal.timeout(ANSWER_MS) });
    const stopped = answer(this.#child, "stopped", ANSWER_MS);
    this.#child.send("stop" satisfies WorkerRequest);
    await Promise.all([stopped, gone]);
  }

  signal(name: "SIGKILL" | "SIGSTOP"): void {
    this.#child.kill(name);
  }

  /** Its handler runs so far, as far as they are written. */
  records(): RunRecord[] {
    return readRunRecords(this.#file);
  }

  [Symbol.dispose](): void {
    this.#child.kill("SIGKILL");
  }
}

/** The next message of this type. */
function answer<T extends WorkerAnswer["type"]>(
  child: ChildProcess,
  type: T,
  timeoutMs: number,
): Promise<WorkerAnswer & { type: T }> {
  return childMessage(
    child,
    (message: WorkerAnswer) => {
      if (message.type === "failed") throw new Error(`a worker process: ${message.reason}`);
      return isOf(message, type) ? message : undefined;
    },
    timeoutMs,
  );
}

function isOf<T extends WorkerAnswer["type"]>(
  message: WorkerAnswer,
  type: T,
): message is WorkerAnswer & { type: T } {
  return message.type === type;
}
