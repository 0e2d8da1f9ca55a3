/** The text of anything that can be thrown: never throws itself, never empty, at most 1,000 characters. */
export function describeThrown(thrown: unknown): string {
  try {
    const text =
      thrown instanceof Error
        ? `${thrown.name}: ${thrown.message}`
        : (JSON.stringify(thrown) ?? String(thrown));
    return (text === "" ? "an empty text" : text).slice(0, 1_000);
  } catch {
    return `a ${typeof thrown} that cannot be shown`;
  }
}
