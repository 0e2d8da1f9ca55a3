/** The middle value, or the mean of the two in the middle. Throws on an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) throw new Error("there is no median of nothing");
  return (upper + lower) / 2;
}

export interface Spread {
  readonly min: number;
  readonly max: number;
}

/** The smallest and the largest value. */
export function spread(values: readonly number[]): Spread {
  return { min: Math.min(...values), max: Math.max(...values) };
}
