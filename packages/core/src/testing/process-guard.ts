import { spawn } from "node:child_process";

/**
 * A tiny shell beside this process. It reads lines, each the whole list of process ids to end, and acts when
 * its input closes: that happens however this process ends, also by SIGKILL, where no exit hook would run.
 */
const SCRIPT =
  'pids=""; while read -r line; do pids=$line; done; [ -z "$pids" ] || kill -9 $pids; rm -rf -- "$1"';

/** Ends servers and removes their folder when this process ends without having done so. */
export interface ProcessGuard {
  /** Replaces the list of processes to end; a process that has exited must leave it, as its id may be reused. */
  watch(pids: readonly number[]): void;
  /** Stands down: nothing is ended or removed any more. */
  release(): void;
}

/** @param folder removed, after the processes were ended, when this process is gone. */
export function startProcessGuard(folder: string): ProcessGuard {
  // Detached: a Ctrl-C that ends this process must not end the guard before it has done its work.
  const shell = spawn("/bin/sh", ["-c", SCRIPT, "lanekeeper-guard", folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  shell.on("error", () => {}); // No shell: servers then live until they are disposed of.
  shell.stdin.on("error", () => {});
  shell.unref();
  if ("unref" in shell.stdin && typeof shell.stdin.unref === "function") shell.stdin.unref();
  return {
    watch: (pids) => void shell.stdin.write(`${pids.join(" ")}\n`),
    release: () => void shell.kill("SIGKILL"),
  };
}
