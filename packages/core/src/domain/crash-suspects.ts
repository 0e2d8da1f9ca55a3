import type { ClaimRecord, DeathRecord } from "./claim-record.js";

/** Deaths with the same event in flight after which the suspects are told apart. */
export const crashLimit = 3;
/** Deaths remembered of one lane. */
const remembered = 8;

/**
 * The deaths of a lane's owners after another one. Only a death counts at which events were in flight: those are the
 * suspects. What was settled or found innocent since is forgotten.
 */
export function recordDeath(
  claim: ClaimRecord,
  member: string,
  inFlight: readonly number[],
): readonly DeathRecord[] {
  if (inFlight.length === 0) return claim.deaths;
  return [...claim.deaths, { member, suspects: [...inFlight] }].slice(-remembered);
}

/** Events that were in flight at `crashLimit` deaths or more, ascending. `frozen`: members called dead that came back. */
export function suspectsOf(deaths: readonly DeathRecord[], frozen: ReadonlySet<string>): number[] {
  const counts = new Map<number, number>();
  for (const { member, suspects } of deaths) {
    if (frozen.has(member)) continue;
    for (const seq of suspects) counts.set(seq, (counts.get(seq) ?? 0) + 1);
  }
  return [...counts].flatMap(([seq, count]) => (count >= crashLimit ? [seq] : [])).sort((a, b) => a - b);
}

/** The deaths without an event that was settled or has run alone and done no harm. */
export function cleared(deaths: readonly DeathRecord[], seq: number): readonly DeathRecord[] {
  return deaths
    .map(({ member, suspects }) => ({ member, suspects: suspects.filter((one) => one !== seq) }))
    .filter(({ suspects }) => suspects.length > 0);
}

/** What a death under test says: one may be by chance, or another event's that is no suspect yet; a second one names it. */
export function verdict(
  tried: readonly number[],
  testing: number | undefined,
): { readonly convicted: readonly number[]; readonly tried: readonly number[] } {
  if (testing === undefined) return { convicted: [], tried };
  if (!tried.includes(testing)) return { convicted: [], tried: [...tried, testing].slice(-remembered) };
  return { convicted: [testing], tried: tried.filter((seq) => seq !== testing) };
}
