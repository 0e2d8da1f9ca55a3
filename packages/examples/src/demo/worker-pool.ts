import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { FromWorker, ToWorker, WorkerTask } from "./worker-task.js";

const WORKER = fileURLToPath(new URL("./worker.js", import.meta.url));
const STOP_TIMEOUT_MS = 30_000;
const MAX_STDERR_CHARS = 4_000;

/** The worker processes of one mode. Disposing kills those that still run. */
export class WorkerPool implements AsyncDisposable {
  readonly #members: readonly Member[];
  /** Rejects when a worker ended before it was told to. */
  readonly failed: Promise<never>;

  /** Starts the processes. */
  constructor(task: WorkerTask, count: number) {
    this.#members = Array.from({ length: count }, () => new Member(task));
    this.failed = Promise.race(this.#members.map((member) => member.failed));
    this.failed.catch(() => {}); // Told to whoever waits at the time.
  }

  /** Handlings so far, of all workers. */
  get handlings(): number {
    return this.#members.reduce((sum, member) => sum + member.handlings, 0);
  }

  /** Resolves when all workers are connected. */
  async ready(): Promise<void> {
    await Promise.race([Promise.all(this.#members.map((member) => member.ready)), this.failed]);
  }

  start(): void {
    for (const member of this.#members) member.send({ type: "start" });
  }

  /** Has the workers finish what is in hand; rejects if they have not ended by themselves in 30 seconds. */
  async stop(): Promise<void> {
    for (const member of this.#members) member.stop();
    const ended = Promise.all(this.#members.map((member) => member.ended));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error("the workers did not end when told to")), STOP_TIMEOUT_MS);
    });
    try {
      await Promise.race([ended, this.failed, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member.kill()));
  }
}

class Member {
  handlings = 0;
  readonly ready: Promise<void>;
  readonly failed: Promise<never>;
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  #stopping = false;

  constructor(task: WorkerTask) {
    this.#child = fork(WORKER, [JSON.stringify(task)], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    let stderr = "";
    let message = "";
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-MAX_STDERR_CHARS);
    });
    let ready = (): void => {};
    this.ready = new Promise((resolve) => {
      ready = resolve;
    });
    this.#child.on("message", (told: FromWorker) => {
      if (told.type === "ready") ready();
      else if (told.type === "progress") this.handlings = told.handlings;
      else message = told.message;
    });
    this.ended = once(this.#child, "close").then(() => {});
    this.failed = new Promise((_, reject) => {
      this.#child.on("error", reject);
      this.#child.on("close", (code, signal) => {
        if (this.#stopping && code === 0) return;
        const how = signal === null ? `with code ${code}` : `by ${signal}`;
        reject(new Error(`a worker process ended ${how}\n${message || stderr}`.trimEnd()));
      });
    });
    this.failed.catch(() => {});
    this.ended.catch(() => {});
  }

  send(message: ToWorker): void {
    // A worker that is gone has been or will be reported by `failed`.
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  stop(): void {
    this.#stopping = true;
    this.send({ type: "stop" });
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}
