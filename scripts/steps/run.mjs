import { spawn } from "node:child_process";

/** The folder that holds package.json, whatever the current folder is. */
export const root = new URL("../../", import.meta.url);

/**
 * Runs a program with its output on ours; without input and in the root folder unless told otherwise.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ env?: Record<string, string>, timeoutMs: number, cwd?: string | URL, stdin?: "ignore" | "inherit" }} options
 * @returns {Promise<number>} its exit code; 130 when Ctrl-C ended it and 1 when another signal did, 127 when it
 * cannot be run, 124 when it was ended because it took longer than `timeoutMs`.
 */
export function run(program, args, { env = {}, timeoutMs, cwd = root, stdin = "ignore" }) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: [stdin, "inherit", "inherit"],
    });
    let late = false;
    // On a terminal Ctrl-C reaches the program too, which then decides how it ends; we wait for it.
    const onSigint = () => process.stdin.isTTY || child.kill("SIGINT");
    const onSigterm = () => child.kill("SIGTERM");
    process.on("SIGINT", onSigint).on("SIGTERM", onSigterm);
    const timer = setTimeout(() => {
      late = true;
      console.error(`${program} ${args.join(" ")}: not done after ${timeoutMs / 1_000} s; ended`);
      child.kill("SIGTERM");
      setTimeout(() => child.kill("SIGKILL"), 5_000).unref();
    }, timeoutMs);
    const finish = (code) => {
      clearTimeout(timer);
      process.off("SIGINT", onSigint).off("SIGTERM", onSigterm);
      resolve(code);
    };
    child.once("error", (error) => {
      console.error(`${program} cannot be run: ${error.message}`);
      finish(127);
    });
    child.once("exit", (code, signal) => finish(late ? 124 : (code ?? (signal === "SIGINT" ? 130 : 1))));
  });
}

/** Runs a JavaScript program of an installed package, given by its path in node_modules. */
export function runTool(path, args, options) {
  return run(process.execPath, [`node_modules/${path}`, ...args], options);
}
