/** Time as the runtime sees it: real in production, virtual in a simulation. */
export interface Clock {
  /** Monotonic milliseconds; goes on while the process is stopped. */
  now(): number;
  /** Wall-clock milliseconds since the epoch. */
  wall(): number;
  /** Calls `run` once, `ms` from now, unless stopped before. */
  after(ms: number, run: () => void): Timer;
}

export interface Timer {
  stop(): void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const handle = setTimeout(run, ms);
    return { stop: () => clearTimeout(handle) };
  },
};

/** Resolves after `ms`, or at once when `signal` aborts. Never rejects. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = () => {
      timer.stop();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = clock.after(ms, finish);
    signal?.addEventListener("abort", finish);
  });
}
