/** What runs on a worker thread: nothing but the computation. It is given copies, and what it returns is copied. */
export function estimate({ loan, chance, trials }: { loan: number; chance: number; trials: number }): number {
  let state = 1;
  let defaults = 0;
  for (let trial = 0; trial < trials; trial++) {
    // A xorshift step: quick, and the same numbers every time, so that an event that comes again gets the same answer.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    if ((state >>> 0) / 2 ** 32 < chance) defaults++;
  }
  return (loan * defaults) / trials;
}
