/** Whether a version text such as "2.10.27-beta.1" is at least `minimum` ("2.10"). Unreadable versions are not. */
export function versionAtLeast(version: string, minimum: string): boolean {
  const numbers = (text: string) =>
    /^v?(\d+)\.(\d+)(?:\.(\d+))?/
      .exec(text)
      ?.slice(1, 4)
      .map((part) => Number(part ?? 0));
  const have = numbers(version);
  const want = numbers(minimum);
  if (have === undefined || want === undefined) return false;
  for (const [index, wanted] of want.entries()) {
    const found = have[index] ?? 0;
    if (found !== wanted) return found > wanted;
  }
  return true;
}
