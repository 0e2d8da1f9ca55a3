import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { untilStopped } from "./stopped-process.js";
import { waitUntil } from "./wait-until.js";

/** After SIGTERM a server that has not ended by then is killed. */
const GRACE_MS = 10_000;
/** The kernel ends a killed process at once; waiting longer means that something is badly wrong. */
const KILL_MS = 10_000;
const TAIL_LINES = 40;

export type ProcessState = "running" | "frozen" | "stopped";

/** One nats-server process after another, all with the same configuration file and log. */
export class ServerProcess {
  readonly #binary: string;
  readonly #configFile: string;
  readonly #logFile: string;
  readonly #onChange: () => void;
  #child: ChildProcess | undefined;
  #frozen = false;

  /** @param onChange called after a process started or ended. */
  constructor(options: { binary: string; configFile: string; logFile: string; onChange: () => void }) {
    this.#binary = options.binary;
    this.#configFile = options.configFile;
    this.#logFile = options.logFile;
    this.#onChange = options.onChange;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get state(): ProcessState {
    if (this.#child === undefined) return "stopped";
    return this.#frozen ? "frozen" : "running";
  }

  /** Starts a process unless one is there. Its output goes to the log file: a pipe would need this process's attention. */
  start(): void {
    if (this.#child !== undefined) return;
    const log = openSync(this.#logFile, "a");
    try {
      const child = spawn(this.#binary, ["-c", this.#configFile], { stdio: ["ignore", log, log] });
      child.unref(); // A forgotten server must not keep the test process alive; the guard ends it.
      child.once("exit", () => this.#ended(child));
      child.once("error", () => this.#ended(child));
      this.#child = child;
      this.#frozen = false;
    } finally {
      closeSync(log);
    }
    this.#onChange();
  }

  /** SIGKILL, frozen or not; resolves once the process is gone. */
  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    const gone = await waitUntil(
      () => (this.#child === undefined ? true : undefined),
      performance.now() + KILL_MS,
      5,
    );
    if (gone !== true)
      throw new Error(`nats-server (process ${this.pid}) did not end within ${KILL_MS} ms of SIGKILL`);
  }

  /** SIGTERM, with SIGKILL after 10 s; a frozen process is thawed so that it can end. */
  async stop(): Promise<void> {
    this.#child?.kill("SIGTERM");
    this.#child?.kill("SIGCONT");
    await waitUntil(() => (this.#child === undefined ? true : undefined), performance.now() + GRACE_MS, 5);
    await this.kill();
  }

  /** SIGSTOP: the sockets stay open and nothing answers from the moment that this returns. */
  freeze(): void {
    this.#signal("SIGSTOP");
    this.#frozen = true;
    if (this.pid !== undefined) untilStopped(this.pid);
  }

  /** SIGCONT. */
  thaw(): void {
    this.#signal("SIGCONT");
    this.#frozen = false;
  }

  /** Everything that the server wrote, over all its processes. */
  log(): string {
    try {
      return readFileSync(this.#logFile, "utf8");
    } catch {
      return "";
    }
  }

  /** The log's last lines, for error messages. */
  logTail(): string {
    return this.log().trimEnd().split("\n").slice(-TAIL_LINES).join("\n");
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#child?.kill(signal) !== true) throw new Error(`nats-server is not running: ${signal} not sent`);
  }

  #ended(child: ChildProcess): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#frozen = false;
    this.#onChange();
  }
}
