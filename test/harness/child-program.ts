import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { within } from "./await-condition.js";
import { guardChild } from "./child-guard.js";
import type { History } from "./history.js";
import type { ProgramOptions } from "./program-options.js";

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program of `programs/` running as a child process. Disposing kills it, frozen or not. */
export interface ChildProgram extends AsyncDisposable {
  /** The name under which it writes its history. */
  readonly id: string;
  readonly pid: number;
  /** Settles when the process is gone, whyever; never rejects. */
  readonly exited: Promise<ProgramExit>;
  /** The end of what it wrote to stdout and stderr. */
  output(): string;
  /** An error with its output, once it has ended with an exit code but 0; a signal is somebody's will. */
  failure(): Error | undefined;
  /** What the program reports about itself. @throws Error after `timeoutMs` (10,000), as when it is frozen. */
  report(timeoutMs?: number): Promise<unknown>;
  /** Waits until it ends by itself. @throws Error with its output after `timeoutMs` or on an exit code but 0. */
  finished(timeoutMs: number): Promise<void>;
  /** SIGTERM, as a supervisor does; resolves when it has ended. @throws Error with its output after `timeoutMs` (30,000). */
  stop(timeoutMs?: number): Promise<ProgramExit>;
  /** SIGKILL, recorded; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGSTOP, recorded. */
  freeze(): void;
  /** SIGCONT, recorded. */
  thaw(): void;
}

/** How much of a child's output is kept. */
const MAX_OUTPUT_CHARS = 64 * 1024;
const READY_TIMEOUT_MS = 30_000;

/**
 * Starts `test/dist/programs/<program>.js` and resolves once it says that it is ready.
 *
 * @throws Error with its output when it ends or stays silent instead.
 */
export async function startProgram(
  program: string,
  options: Omit<ProgramOptions, "process" | "historyFolder"> & { name: string },
  history: History,
): Promise<ChildProgram> {
  const { name, ...rest } = options;
  const id = history.nameFor(name);
  const child = new RunningProgram(program, { ...rest, process: id, historyFolder: history.folder }, history);
  try {
    await within(child.ready, READY_TIMEOUT_MS, () => `${id} to be ready; its output:\n${child.output()}`);
    return child;
  } catch (error) {
    await child[Symbol.asyncDispose]();
    throw error;
  }
}

class RunningProgram implements ChildProgram {
  readonly id: string;
  readonly exited: Promise<ProgramExit>;
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  readonly #history: History;
  #output = "";
  #exit: ProgramExit | undefined;

  constructor(program: string, options: ProgramOptions, history: History) {
    this.id = options.process;
    this.#history = history;
    this.#child = fork(pathOf(program), [JSON.stringify(options)], { execArgv: [], silent: true });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output = (this.#output + text).slice(-MAX_OUTPUT_CHARS);
      });
    }
    const standDown = guardChild(this.pid);
    history.record({ kind: "started", about: this.id, pid: this.pid });
    this.exited = new Promise((resolve) => {
      // "close" comes after "exit", with all output read.
      this.#child.once("close", (code, signal) => {
        this.#exit = { code, signal };
        standDown();
        history.record({ kind: "exited", about: this.id, code, signal });
        resolve(this.#exit);
      });
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("message", () => resolve());
      void this.exited.then((exit) => reject(this.#failure(`ended (${said(exit)}) before it was ready`)));
    });
    this.ready.catch(() => {}); // Whoever waits for it gets it; nobody does after a failed start.
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error(`${this.id} could not be started`);
    return pid;
  }

  output(): string {
    return this.#output;
  }

  failure(): Error | undefined {
    const exit = this.#exit;
    return exit === undefined || exit.code === 0 || exit.signal !== null
      ? undefined
      : this.#failure(`ended (${said(exit)})`);
  }

  async report(timeoutMs = 10_000): Promise<unknown> {
    const answer = new Promise<unknown>((resolve) => this.#child.once("message", resolve));
    this.#child.send("report", () => {}); // A child that is gone shows in the race below.
    const gone = this.exited.then((exit) => {
      throw this.#failure(`ended (${said(exit)}) instead of reporting`);
    });
    return await within(Promise.race([answer, gone]), timeoutMs, `${this.id} to report`);
  }

  async finished(timeoutMs: number): Promise<void> {
    const exit = await this.#ended(timeoutMs);
    if (exit.code !== 0) throw this.#failure(`ended (${said(exit)})`);
  }

  async stop(timeoutMs = 30_000): Promise<ProgramExit> {
    if (this.#exit === undefined) process.kill(this.pid, "SIGTERM");
    return await this.#ended(timeoutMs);
  }

  async kill(): Promise<void> {
    if (this.#exit === undefined) {
      process.kill(this.pid, "SIGKILL");
      this.#history.record({ kind: "killed", about: this.id });
    }
    await this.exited;
  }

  freeze(): void {
    if (this.#exit !== undefined) throw this.#failure("has ended and cannot be frozen");
    process.kill(this.pid, "SIGSTOP");
    this.#history.record({ kind: "frozen", about: this.id, why: "SIGSTOP" });
  }

  thaw(): void {
    if (this.#exit !== undefined) throw this.#failure("has ended and cannot be thawed");
    this.#history.record({ kind: "thawed", about: this.id });
    process.kill(this.pid, "SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #ended(timeoutMs: number): Promise<ProgramExit> {
    try {
      return await within(this.exited, timeoutMs, `${this.id} to end`);
    } catch (error) {
      throw this.#failure(error instanceof Error ? error.message : String(error));
    }
  }

  #failure(what: string): Error {
    return new Error(`${this.id}: ${what}. Its output:\n${this.#output || "(none)"}`);
  }
}

function said(exit: ProgramExit): string {
  return exit.signal === null ? `code ${exit.code}` : exit.signal;
}

/** Tests run from source, children from `dist`; either way the programs are the compiled ones. */
function pathOf(program: string): string {
  const compiled = import.meta.url.includes("/test/dist/");
  const path = fileURLToPath(
    new URL(compiled ? `../programs/${program}.js` : `../dist/programs/${program}.js`, import.meta.url),
  );
  if (!existsSync(path)) throw new Error(`${path} is missing: run "npm run build" first`);
  return path;
}
