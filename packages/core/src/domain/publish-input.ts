import { LanekeeperError } from "./lanekeeper-error.js";
import { show } from "./option-faults.js";

/** The longest message id, in UTF-16 units. */
const MAX_ID_LENGTH = 256;

/** RFC 9110's token: what a header name may be in every client. */
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * Refuses an id that would not come back as it went: header values lose white space at their ends (R03).
 *
 * @throws LanekeeperError INVALID_ID
 */
export function checkId(id: unknown): void {
  if (typeof id !== "string" || id === "") {
    throw new LanekeeperError("INVALID_ID", `an event's id must be a non-empty string, not ${show(id)}`);
  }
  const fault =
    valueFault(id) ?? (id.length > MAX_ID_LENGTH ? `is longer than ${MAX_ID_LENGTH} characters` : undefined);
  if (fault !== undefined) throw new LanekeeperError("INVALID_ID", `the id ${show(id)} ${fault}`);
}

/** @throws LanekeeperError INVALID_OPTIONS */
export function checkExpectLastSeq(expectLastSeq: unknown): void {
  if (!Number.isSafeInteger(expectLastSeq) || (expectLastSeq as number) < 0) {
    throw new LanekeeperError(
      "INVALID_OPTIONS",
      `expectLastSeq must be an integer from 0, not ${show(expectLastSeq)}`,
    );
  }
}

/**
 * The caller's headers as name and value pairs, each of which reads back exactly as it was given.
 *
 * @throws LanekeeperError INVALID_HEADER
 */
export function headerLines(headers: unknown): [name: string, value: string][] {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw invalidHeader(`headers must be an object of names and values, not ${show(headers)}`);
  }
  const lines: [string, string][] = [];
  for (const [name, given] of Object.entries(headers)) {
    if (!headerName.test(name)) {
      throw invalidHeader(
        `the header name ${show(name)} must consist of letters, digits and !#$%&'*+-.^_\`|~ only`,
      );
    }
    if (/^nats-/i.test(name)) {
      throw invalidHeader(
        `the header ${show(name)} is the server's: it would act on the event instead of being carried by it; use another name`,
      );
    }
    const values: readonly unknown[] = Array.isArray(given) ? given : [given];
    if (values.length === 0) throw invalidHeader(`the header ${show(name)} has no value`);
    for (const value of values) {
      if (typeof value !== "string") {
        throw invalidHeader(`the header ${show(name)} must be a string, not ${show(value)}`);
      }
      const fault = valueFault(value);
      if (fault !== undefined)
        throw invalidHeader(`the header ${show(name)}: the value ${show(value)} ${fault}`);
      lines.push([name, value]);
    }
  }
  return lines;
}

function valueFault(value: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach the wire
  if (/[\0-\x1f\x7f]/.test(value)) return "has a control character, such as a line break";
  if (value.trim() !== value) return "begins or ends with white space, which a header would lose";
  if (!value.isWellFormed()) return "is not well-formed Unicode";
  return undefined;
}

function invalidHeader(message: string): LanekeeperError {
  return new LanekeeperError("INVALID_HEADER", message);
}
