import { existsSync, readdirSync, readFileSync } from "node:fs";

const DEADLINE_MS = 5_000;

/**
 * Waits, without giving way to anything else, until every thread of a process that was sent SIGSTOP has stopped:
 * the signal is on its way for a moment, in which the process can still answer. Where there is no `/proc` it
 * returns at once.
 *
 * @throws Error after five seconds.
 */
export function untilStopped(pid: number): void {
  if (!existsSync(`/proc/${pid}/task`)) return;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const deadlineAt = performance.now() + DEADLINE_MS;
  while (!allThreadsStopped(pid)) {
    if (performance.now() > deadlineAt) {
      throw new Error(`process ${pid} has not stopped ${DEADLINE_MS} ms after SIGSTOP`);
    }
    Atomics.wait(pause, 0, 0, 1);
  }
}

function allThreadsStopped(pid: number): boolean {
  try {
    // The state follows the program's name, which is in parentheses and may itself contain any character.
    return readdirSync(`/proc/${pid}/task`).every((thread) =>
      /\) T [^)]*$/.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8")),
    );
  } catch {
    return false; // A thread ended between the two readings.
  }
}
