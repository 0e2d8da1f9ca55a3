/**
 * The subjects of a stream that could store an event no lane delivers: those that overlap the lane space
 * (`<subject>.>`) without being one of the layout's own. An event stored through one would wait for ever, unseen (O4).
 */
export function foreignSubjects(subject: string, own: readonly string[], found: readonly string[]): string[] {
  const ours = new Set(own);
  return found.filter((one) => !ours.has(one) && subjectsOverlap(one, `${subject}.>`));
}

/** Whether some literal subject matches both patterns. */
export function subjectsOverlap(a: string, b: string): boolean {
  const left = a.split(".");
  const right = b.split(".");
  for (let index = 0; ; index++) {
    const one = left[index];
    const other = right[index];
    if (one === undefined || other === undefined) return one === other;
    if (one === ">" || other === ">") return true;
    if (one !== "*" && other !== "*" && one !== other) return false;
  }
}
