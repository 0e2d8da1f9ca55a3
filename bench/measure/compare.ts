import { type Row, rowOf, type Series } from "./row.js";
import type { Comparison, Contestant, Trial } from "./trial.js";

export interface CompareOptions {
  readonly rounds: number;
  /** Told before each trial what is about to run. */
  onProgress(line: string): void;
}

/**
 * Runs all contestants of a comparison one after the other, round by round, and returns a row for each subject
 * beside each reference.
 *
 * Everybody's rounds are spread over the same time, so that a machine that gets slower or faster meanwhile does so
 * for all; who goes first changes from round to round.
 */
export async function compare(comparison: Comparison, options: CompareOptions): Promise<Row[]> {
  const contestants = [...comparison.subjects, ...comparison.references];
  const trials = new Map<Contestant, Trial[]>(contestants.map((contestant) => [contestant, []]));
  for (let round = 0; round < options.rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const contestant = contestants[(turn + round) % contestants.length];
      if (contestant === undefined) continue;
      options.onProgress(`${comparison.name}: round ${round + 1} of ${options.rounds}, ${contestant.name}`);
      try {
        trials.get(contestant)?.push(await contestant.run());
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new Error(`${comparison.name}, ${contestant.name}: ${reason}`, { cause: error });
      }
    }
  }
  const series = (contestant: Contestant): Series => ({
    name: contestant.name,
    trials: trials.get(contestant) ?? [],
  });
  const ideal = comparison.ideal?.();
  return comparison.subjects.flatMap((subject) =>
    comparison.references.map((reference) =>
      rowOf(comparison.name, series(subject), series(reference), ideal),
    ),
  );
}
