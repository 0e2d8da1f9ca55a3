import { cpuMicrosOfAll, ownCpuMicros } from "./cpu.js";
import type { Trial } from "./trial.js";

/** Where everything stood at one moment of a run in this process. */
export interface Mark {
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
  readonly messages: number;
  readonly cpuMicros: number;
  readonly serverCpuMicros: number | undefined;
}

/** `messages`: how many are done by now. */
export function takeMark(messages: number, serverPids: readonly number[]): Mark {
  return {
    at: performance.now(),
    messages,
    cpuMicros: ownCpuMicros(),
    serverCpuMicros: cpuMicrosOfAll(serverPids),
  };
}

/** What was done between two marks. */
export function between(
  from: Mark,
  to: Mark,
  orderFaults: number,
  details?: Readonly<Record<string, number>>,
): Trial {
  return {
    messages: to.messages - from.messages,
    seconds: (to.at - from.at) / 1_000,
    cpuMicros: to.cpuMicros - from.cpuMicros,
    serverCpuMicros:
      from.serverCpuMicros === undefined || to.serverCpuMicros === undefined
        ? undefined
        : to.serverCpuMicros - from.serverCpuMicros,
    orderFaults,
    ...(details === undefined ? {} : { details }),
  };
}
