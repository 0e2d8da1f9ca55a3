/**
 * What is wrong with one literal token of a subject root or an intake, as the end of a sentence
 * that begins with the token; undefined when nothing is.
 *
 * @param index the token's place in its subject, from 0
 */
export function literalTokenFault(token: string, index: number): string | undefined {
  if (token === "") return "is empty";
  if (!token.isWellFormed()) return "is not well-formed Unicode";
  if (FORBIDDEN.test(token)) return "has whitespace or a control character";
  if (/[*>]/.test(token)) return "has a wildcard";
  // Both would be read as functions in the destination of a server mapping; quotes end a string in nats-server.conf.
  if (token.startsWith("$")) return "starts with $, which is the server's own";
  if (/[{}"\\]/.test(token))
    return "has a brace, a quote or a backslash, which the server's mappings would read";
  if (index === 0 && token === "_INBOX") return "is where replies go";
  return undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const FORBIDDEN = /[\s\0-\x1f\x7f]/;
