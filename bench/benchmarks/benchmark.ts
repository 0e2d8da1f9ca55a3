import type { Row } from "../measure/row.js";

export interface BenchmarkOptions {
  /** Smaller sizes and fewer cases: each benchmark under 40 s on two cores. */
  readonly quick: boolean;
  /** Divides the numbers of events and the measured times once more; for tests of the benchmarks themselves. */
  readonly shrink: number;
  /** 3 or more. */
  readonly rounds: number;
  readonly seed: number;
  /** Runs only the cases whose name holds this, whatever its upper and lower case. */
  readonly only: string | undefined;
  onProgress(line: string): void;
}

export interface BenchmarkResult {
  readonly rows: readonly Row[];
  /** What was not run and why, in full sentences. */
  readonly skipped?: readonly string[];
  readonly versions?: Readonly<Record<string, string>>;
}

export interface Benchmark {
  readonly name: string;
  /** One line for --list. */
  readonly summary: string;
  /** What is measured, against what, and what is not measured. Plain sentences. */
  readonly notes: readonly string[];
  run(options: BenchmarkOptions): Promise<BenchmarkResult>;
}

/** A size divided for tests of the benchmarks, at least `least`. */
export function sized(full: number, options: Pick<BenchmarkOptions, "shrink">, least = 1): number {
  return Math.max(Math.round(full / options.shrink), least);
}
