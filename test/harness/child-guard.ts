import { type ChildProcess, spawn } from "node:child_process";

/**
 * A shell beside this process that kills the children it was last told of when its input closes: that happens
 * however this process ends, also by SIGKILL, and a frozen child could not notice by itself.
 */
const SCRIPT = 'pids=""; while read -r line; do pids=$line; done; [ -z "$pids" ] || kill -9 $pids';

const guarded = new Set<number>();
let guard: ChildProcess | undefined;

/** @returns stands down for this child; to be called once it has exited, as its id may be used again. */
export function guardChild(pid: number): () => void {
  guarded.add(pid);
  tell();
  return () => {
    guarded.delete(pid);
    tell();
  };
}

function tell(): void {
  guard ??= startGuard();
  guard.stdin?.write(`${[...guarded].join(" ")}\n`);
}

function startGuard(): ChildProcess {
  // Detached: a Ctrl-C that ends this process must not end the guard before it has done its work.
  const shell = spawn("/bin/sh", ["-c", SCRIPT, "lanekeeper-test-guard"], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  shell.on("error", () => {}); // No shell: children then end with their tests, or by noticing that we are gone.
  shell.stdin.on("error", () => {});
  shell.unref();
  if ("unref" in shell.stdin && typeof shell.stdin.unref === "function") shell.stdin.unref();
  return shell;
}
