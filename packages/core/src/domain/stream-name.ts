/** JetStream's own rule: a stream's name is one subject token without path characters. */
export function streamNameFault(name: unknown): string | undefined {
  if (typeof name !== "string" || name === "") return "stream must be a non-empty string";
  if (name.length > 255) return "stream must be at most 255 characters";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (/[\s.*>/\\\u0000-\u001f\u007f]/.test(name)) {
    return `stream ${JSON.stringify(name)} must not contain white space, ".", "*", ">", "/" or "\\"`;
  }
  return undefined;
}
