import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** CPU time of another process so far, user and system, in microseconds; undefined where /proc does not tell. */
function cpuMicrosOf(pid: number): number | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return undefined;
  }
  // The program's name comes in parentheses and may hold spaces; fields 14 and 15 are utime and stime in clock ticks.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return Number.isFinite(ticks) ? (ticks * 1_000_000) / ticksPerSecond() : undefined;
}

/** The sum over several processes; undefined when one of them does not tell. */
export function cpuMicrosOfAll(pids: readonly number[]): number | undefined {
  let total = 0;
  for (const pid of pids) {
    const micros = cpuMicrosOf(pid);
    if (micros === undefined) return undefined;
    total += micros;
  }
  return total;
}

/** CPU time of this process so far, all its threads, in microseconds. */
export function ownCpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

let ticks: number | undefined;

function ticksPerSecond(): number {
  ticks ??= Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8", timeout: 5_000 }));
  return ticks;
}
