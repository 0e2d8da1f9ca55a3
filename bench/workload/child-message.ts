import type { ChildProcess } from "node:child_process";

/**
 * The next message of a child process for which `match` returns something, and what it returns; `match` may throw.
 *
 * @throws when the process ends first, or no such message comes within `timeoutMs`.
 */
export function childMessage<M, T>(
  child: ChildProcess,
  match: (message: M) => T | undefined,
  timeoutMs: number,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      child.off("message", onMessage);
      child.off("exit", onExit);
      child.off("error", reject);
      settle();
    };
    const onMessage = (message: M) => {
      try {
        const matched = match(message);
        if (matched !== undefined) finish(() => resolve(matched));
      } catch (error) {
        finish(() => reject(error));
      }
    };
    const onExit = (code: number | null, signal: string | null) =>
      finish(() => reject(new Error(`process ${child.pid} ended with ${code ?? signal} before it answered`)));
    const timer = setTimeout(
      () => finish(() => reject(new Error(`process ${child.pid} did not answer within ${timeoutMs} ms`))),
      timeoutMs,
    );
    child.on("message", onMessage);
    child.on("exit", onExit);
    child.on("error", reject);
  });
}
