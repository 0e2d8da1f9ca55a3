import type { Work } from "../measure/read-trial.js";

/** A handler that waits, as for a database: one timer of Node.js, the same for all subjects. */
export function sleepWork(ms: number): Work {
  return () => new Promise((resolve) => setTimeout(resolve, ms));
}
