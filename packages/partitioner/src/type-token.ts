import { describeValue, quote } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import { escapeToken, MAX_TOKEN_BYTES, unescapeToken, utf8Length } from "./token-codec.js";

/**
 * An event type as the end of a subject: one or more tokens with a dot between them, each encoded
 * by the rule of keys. `created` and `address.changed` stay as they are.
 *
 * @param type a well-formed string of non-empty tokens; at most 512 bytes of UTF-8 once encoded
 * @throws PartitionerError INVALID_TYPE for anything else
 */
export function encodeType(type: string): string {
  const given: unknown = type;
  if (typeof given !== "string" || given === "" || !given.isWellFormed()) {
    throw notAType(given, "it is no non-empty, well-formed string");
  }
  const tokens = given.split(".");
  if (tokens.includes("")) throw notAType(given, "one of its dot-separated tokens is empty");
  const encoded = tokens.map(escapeToken).join(".");
  if (utf8Length(encoded) > MAX_TOKEN_BYTES) {
    throw notAType(given, `it takes ${utf8Length(encoded)} bytes and ${MAX_TOKEN_BYTES} is the limit`);
  }
  return encoded;
}

/**
 * The type that the end of a subject stands for: the inverse of {@link encodeType}.
 *
 * @throws PartitionerError INVALID_TOKEN for any other spelling, an empty token or more than 512 bytes
 */
export function decodeType(encoded: string): string {
  const given: unknown = encoded;
  if (typeof given !== "string") {
    throw new PartitionerError(
      "INVALID_TOKEN",
      `an encoded type must be a string, and this is ${describeValue(given)}`,
    );
  }
  if (utf8Length(given) > MAX_TOKEN_BYTES) {
    throw new PartitionerError(
      "INVALID_TOKEN",
      `${quote(given)} is no encoded type: it is longer than ${MAX_TOKEN_BYTES} bytes`,
    );
  }
  return given
    .split(".")
    .map((token) => decodeToken(token, given))
    .join(".");
}

function decodeToken(token: string, whole: string): string {
  const result = unescapeToken(token);
  if ("fault" in result) {
    throw new PartitionerError(
      "INVALID_TOKEN",
      `${quote(whole)} is no encoded type: ${quote(token)}: ${result.fault}`,
    );
  }
  if (result.text.includes(".")) {
    // Types join their tokens with a dot, so an escaped dot inside a token could not come back.
    throw new PartitionerError(
      "INVALID_TOKEN",
      `${quote(whole)} is no encoded type: a dot separates tokens and is never encoded`,
    );
  }
  return result.text;
}

function notAType(given: unknown, why: string): PartitionerError {
  return new PartitionerError(
    "INVALID_TYPE",
    `an event type must be one or more non-empty tokens with a dot between them, such as "created" or "address.changed", and this is ${describeValue(given)}: ${why}`,
  );
}
