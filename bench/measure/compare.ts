import { type Row, rowOf, type Series } from "./row.js";
import type { Comparison, Contestant, Trial } from "./trial.js";

export interface CompareOptions {
  readonly rounds: number;
  /** Runs only the cases whose name holds this, whatever its upper and lower case. */
  readonly only: string | undefined;
  /** Told before each trial what is about to run. */
  onProgress(line: string): void;
}

/** Whether the case of this name is to be run; to be asked where much is made for a case beforehand. */
export function isWanted(name: string, { only = "" }: Pick<CompareOptions, "only">): boolean {
  return name.toLowerCase().includes(only.toLowerCase());
}

/**
 * Runs all contestants of a comparison one after the other, round by round, and returns a row for each subject
 * beside each reference; none for a case that is not wanted.
 *
 * Everybody's rounds are spread over the same time, so that a machine that gets slower or faster meanwhile does so
 * for all; who goes first changes from round to round.
 */
export async function compare(comparison: Comparison, options: CompareOptions): Promise<Row[]> {
  if (!isWanted(comparison.name, options)) return [];
  const contestants = [...comparison.subjects, ...comparison.references];
  const trials = new Map<Contestant, Trial[]>(contestants.map((contestant) => [contestant, []]));
  const { warmUpRounds = 0 } = comparison;
  for (let round = -warmUpRounds; round < options.rounds; round++) {
    const counted = round < 0 ? "warm-up" : `round ${round + 1} of ${options.rounds}`;
    for (let turn = 0; turn < contestants.length; turn++) {
      const contestant = contestants[(turn + round + warmUpRounds) % contestants.length];
      if (contestant === undefined) continue;
      options.onProgress(`${comparison.name}: ${counted}, ${contestant.name}`);
      try {
        const trial = await contestant.run();
        if (round >= 0) trials.get(contestant)?.push(trial);
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
