import type { Benchmark } from "./benchmarks/benchmark.js";
import type { Row } from "./measure/row.js";
import { describeMachine, installedVersions } from "./report/machine.js";
import { writeResults } from "./report/readme-results.js";
import { detailLines, markdownOf, tableOf } from "./report/table.js";

export interface RunOptions {
  readonly quick: boolean;
  readonly json: boolean;
  readonly markdown: boolean;
  readonly rounds: number;
  readonly seed: number;
  readonly only: string | undefined;
  readonly shrink: number;
  /** As it was called, for the record. */
  readonly command: string;
}

/** What the last line of the output says with --json. */
export interface Report {
  readonly rows: readonly Row[];
  readonly skipped: readonly string[];
  readonly failures: readonly string[];
  readonly command: string;
  readonly finishedAt: string;
  readonly machine: ReturnType<typeof describeMachine>;
  readonly versions: Readonly<Record<string, string>>;
}

const README = new URL("../README.md", import.meta.url);

/** Runs benchmarks one after the other and prints what came of them. A failed one does not keep the others from running. */
export async function runBenchmarks(
  benchmarks: readonly Benchmark[],
  options: RunOptions,
): Promise<{ failed: boolean }> {
  const say = options.json ? console.error : console.log;
  const machine = describeMachine();
  const versions = installedVersions();
  const rows: Row[] = [];
  const skipped: string[] = [];
  const failures: string[] = [];
  for (const benchmark of benchmarks) {
    say(`\n== ${benchmark.name}: ${benchmark.summary}`);
    for (const note of benchmark.notes) say(`   ${note}`);
    const startedAt = performance.now();
    try {
      const result = await benchmark.run({ ...options, onProgress: (line) => console.error(`   ${line}`) });
      rows.push(...result.rows);
      skipped.push(...(result.skipped ?? []));
      Object.assign(versions, result.versions);
      if (result.rows.length > 0) say(tableOf(result.rows));
      for (const line of [...detailLines(result.rows), ...(result.skipped ?? [])]) say(`   ${line}`);
      failures.push(...disorder(result.rows));
    } catch (error) {
      failures.push(`${benchmark.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    say(`   took ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
  }
  if (options.only !== undefined && rows.length + skipped.length + failures.length === 0) {
    failures.push(`no case of these benchmarks has ${JSON.stringify(options.only)} in its name`);
  }
  const finishedAt = new Date();
  if (options.markdown && failures.length === 0) {
    const info = { command: options.command, finishedAt, machine, versions };
    writeResults(README, info, markdownOf(rows), detailLines(rows));
    say("\nwritten into bench/README.md");
  }
  say(
    "\nmsgs/s, CPU µs per message of the clients and of the server: medians over the rounds, subject / reference.",
  );
  for (const failure of failures) console.error(`FAILED: ${failure}`);
  if (options.json) {
    const { command } = options;
    const report: Report = {
      rows,
      skipped,
      failures,
      command,
      finishedAt: finishedAt.toISOString(),
      machine,
      versions,
    };
    console.log(JSON.stringify(report));
  }
  return { failed: failures.length > 0 };
}

/** Lanekeeper's own order faults fail a run; what the idioms do is only reported. */
function disorder(rows: readonly Row[]): string[] {
  return rows.flatMap(({ name, subject, orderFaults }) =>
    orderFaults > 0 ? [`${name}, ${subject}: ${orderFaults} order faults`] : [],
  );
}
