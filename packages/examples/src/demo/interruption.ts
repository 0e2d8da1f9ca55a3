import { constants } from "node:os";

/** Why the demo ends before its time. */
export interface Interruption {
  /** By a shell's convention: 128 and the signal's number. */
  readonly exitCode: number;
}

/**
 * Resolves at the first SIGINT, SIGTERM or SIGHUP, and when the reader of our output is gone. Later ones are ignored:
 * cleaning up is under way and is bounded.
 */
export function interruption(): Promise<Interruption> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => resolve({ exitCode: 128 + constants.signals[signal] }));
    }
    process.stdout.on("error", () => resolve({ exitCode: 128 + constants.signals.SIGPIPE }));
  });
}
