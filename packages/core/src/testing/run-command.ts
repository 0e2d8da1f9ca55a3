import { spawn } from "node:child_process";

const MAX_OUTPUT_CHARS = 1_000_000;

/**
 * Runs a program without a shell and without input.
 *
 * @returns its standard output, at most a million characters of it.
 * @throws Error that names the program and what it said, when it cannot be started, fails, or has not ended after
 * `timeoutMs`, in which case it is killed with all that it started.
 */
export function runCommand(
  program: string,
  args: readonly string[],
  options: { timeoutMs: number; cwd: string; env: NodeJS.ProcessEnv },
): Promise<string> {
  return new Promise((resolve, reject) => {
    // A process group of its own, so that the helpers it starts end with it.
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let output = "";
    let complaints = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < MAX_OUTPUT_CHARS) output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaints = (complaints + text).slice(-4_000);
    });
    const timer = setTimeout(() => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      fail(`did not end within ${Math.round(options.timeoutMs / 1_000)} s`);
    }, options.timeoutMs);
    const fail = (what: string): void => {
      clearTimeout(timer);
      const said = complaints.trim().split("\n").slice(-4).join(" | ");
      reject(new Error(`${program} ${args[0] ?? ""} ${what}${said === "" ? "" : `: ${said}`}`));
    };
    child.once("error", (error) => fail(`cannot be run (${error.message})`));
    child.once("close", (code, signal) => {
      if (code !== 0) return fail(`failed with ${signal ?? `exit code ${code}`}`);
      clearTimeout(timer);
      resolve(output);
    });
  });
}
