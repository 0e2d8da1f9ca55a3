/** The invariants of the design that a history can be checked against. */
export type CheckedInvariant = "O1" | "O2" | "O3" | "O4" | "O6" | "P1";

/** One place where a history breaks an invariant. */
export interface Fault {
  readonly invariant: CheckedInvariant;
  readonly key: string;
  /** The stream sequences involved, those that came first in the stream first; empty where none is known. */
  readonly seqs: readonly number[];
  /** The processes involved. */
  readonly processes: readonly string[];
  /** When it showed, in the history's `atMs`; absent for what never happened. */
  readonly atMs?: number;
  /** One sentence with all of the above, and the group where there is one. */
  readonly text: string;
}

/** Throws an error that lists the faults, the first ones in full; does nothing when there are none. */
export function expectNoFaults(faults: readonly Fault[], what = "the history"): void {
  if (faults.length === 0) return;
  const shown = faults.slice(0, MAX_SHOWN).map((fault) => `  ${fault.invariant}: ${fault.text}`);
  const more = faults.length > MAX_SHOWN ? [`  … and ${faults.length - MAX_SHOWN} more`] : [];
  throw new Error([`${what} has ${faults.length} faults:`, ...shown, ...more].join("\n"));
}

const MAX_SHOWN = 15;
