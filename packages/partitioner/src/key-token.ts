import { describeValue, quote } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import { escapeToken, MAX_TOKEN_BYTES, unescapeToken, utf8Length } from "./token-codec.js";

/**
 * The key's one canonical subject token (R02, R03): the key itself, with only the bytes 0x00 to
 * 0x20, 0x7F, `.`, `*`, `>` and `%` percent-encoded, in upper case.
 * Composed and decomposed forms of a character are different keys.
 *
 * @param key a non-empty, well-formed string whose token has at most 512 bytes of UTF-8
 * @throws PartitionerError INVALID_KEY for anything else (R04)
 */
export function encodeKey(key: string): string {
  const given: unknown = key;
  if (typeof given !== "string" || given === "") throw notAKey(describeValue(given));
  if (isPlain(given)) return given;
  if (!given.isWellFormed()) throw notAKey(`${describeValue(given)}, which has a lone surrogate`);
  const token = escapeToken(given);
  const bytes = utf8Length(token);
  if (bytes > MAX_TOKEN_BYTES) {
    throw new PartitionerError(
      "INVALID_KEY",
      `the key ${quote(given)} takes ${bytes} bytes as a subject token and ${MAX_TOKEN_BYTES} is the limit; use a shorter key, for example a digest of it`,
    );
  }
  return token;
}

/**
 * The key that a token stands for: the inverse of {@link encodeKey}.
 *
 * @throws PartitionerError INVALID_TOKEN for any other spelling: lower-case or needless escapes,
 *   raw bytes that should be escaped, malformed Unicode, an empty or an over-long token
 */
export function decodeKey(token: string): string {
  const given: unknown = token;
  if (typeof given !== "string") {
    throw new PartitionerError(
      "INVALID_TOKEN",
      `a key token must be a string, and this is ${describeValue(given)}`,
    );
  }
  if (isPlain(given)) return given;
  const result = unescapeToken(given);
  if ("fault" in result) {
    throw new PartitionerError(
      "INVALID_TOKEN",
      `${quote(given)} is no key token: ${result.fault}; publishers must encode keys as encodeKey does`,
    );
  }
  if (utf8Length(given) > MAX_TOKEN_BYTES) {
    throw new PartitionerError(
      "INVALID_TOKEN",
      `${quote(given)} is no key token: it is longer than ${MAX_TOKEN_BYTES} bytes`,
    );
  }
  return result.text;
}

/** True where key and token are the same text for sure: visible ASCII that needs no encoding, of a fitting length. */
function isPlain(text: string): boolean {
  const length = text.length;
  if (length === 0 || length > MAX_TOKEN_BYTES) return false;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit <= 0x20 || unit >= 0x7f || unit === 0x2e || unit === 0x2a || unit === 0x3e || unit === 0x25)
      return false;
  }
  return true;
}

function notAKey(what: string): PartitionerError {
  return new PartitionerError(
    "INVALID_KEY",
    `a key must be a non-empty, well-formed string, and this is ${what}; pass the id that names the customer, order or device, as a string`,
  );
}
