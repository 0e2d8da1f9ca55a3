/**
 * The one spelling of a text as a NATS subject token.
 *
 * Bytes that NATS cannot carry inside a token, or that would make two spellings possible, are
 * percent-encoded with upper-case digits: 0x00 to 0x20, 0x7F, `.`, `*`, `>` and `%`. All else,
 * also outside ASCII, stays as it is, so that an ordinary text is its own token in any language.
 */

/** The longest token, in bytes of UTF-8. */
export const MAX_TOKEN_BYTES = 512;

const ENCODED = /[\0-\x20\x7f.*>%]/;
const ENCODED_ALL = new RegExp(ENCODED.source, "g");
const ESCAPE = /%([0-9A-F]{2})/g;

/** The token of a well-formed text (the caller has checked that it is one). */
export function escapeToken(text: string): string {
  return ENCODED.test(text) ? text.replace(ENCODED_ALL, escapeCharacter) : text;
}

/**
 * The text of a token, or a sentence fragment that says why this is not the text's one spelling.
 * Does not look at the length.
 */
export function unescapeToken(token: string): { text: string } | { fault: string } {
  if (token === "") return { fault: "it is empty" };
  if (!token.isWellFormed()) return { fault: "it is not well-formed Unicode" };
  // Whatever is not a complete escape stays in place, is then encoded again and so differs.
  const text = token.replace(ESCAPE, unescapeCharacter);
  const canonical = escapeToken(text);
  return canonical === token ? { text } : { fault: "it is not in the one canonical spelling" };
}

/** Bytes of a well-formed text in UTF-8, without making them. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    // A surrogate pair is two units and four bytes: two each.
    bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

function escapeCharacter(character: string): string {
  const code = character.charCodeAt(0);
  return `%${code < 16 ? "0" : ""}${code.toString(16).toUpperCase()}`;
}

/** Every encoded byte is ASCII, so one escape is one character; an escape of any other byte is refused by the round trip. */
function unescapeCharacter(_escape: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 16));
}
