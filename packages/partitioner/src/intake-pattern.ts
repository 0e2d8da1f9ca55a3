import { describeValue, quote } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import { literalTokenFault } from "./literal-token.js";
import { utf8Length } from "./token-codec.js";

/** The longest intake pattern, in bytes of UTF-8. */
const MAX_INTAKE_BYTES = 512;

/** An intake pattern taken apart. */
export interface Intake {
  /** The pattern as it was given: `sensors.*.{key}.*`. */
  readonly pattern: string;
  /** The pattern as a NATS subject: `sensors.*.*.*`. */
  readonly wildcard: string;
  /** The key's place among the `*` of {@link wildcard}, from 1: what the server's `{{wildcard(i)}}` counts. */
  readonly keyWildcard: number;
  /** The places of the type's tokens among the `*`, in order, from 1, without a final `>`. */
  readonly typeWildcards: readonly number[];
  /** True when the pattern ends in `>`, so that the type has one or more tokens beyond {@link typeWildcards}. */
  readonly typeTail: boolean;
}

/** The intake of a layout that names none: `in.<subject>.{key}.*`. */
export function defaultIntake(subject: string): string {
  return `in.${subject}.{key}.*`;
}

/**
 * Reads an intake pattern: the subject that publishers use where the server chooses the lane.
 * Its tokens are literals, `*`, exactly one `{key}`, and perhaps a final `>`; all wildcards but
 * the key become the type, in order.
 *
 * @param subject the layout's subject, whose lanes the pattern must stay clear of
 * @throws PartitionerError INVALID_INTAKE, naming every fault
 */
export function parseIntake(pattern: string, subject: string): Intake {
  const faults = intakeFaults(pattern, subject);
  if (faults.length > 0) {
    throw new PartitionerError(
      "INVALID_INTAKE",
      `the intake ${describeValue(pattern)} cannot be used: ${faults.join("; ")}`,
    );
  }
  return readIntake(pattern);
}

/** What is wrong with a pattern, each as a sentence fragment; empty when nothing is. */
export function intakeFaults(pattern: unknown, subject: string): string[] {
  if (typeof pattern !== "string" || pattern === "")
    return ['it must be a subject pattern such as "in.orders.{key}.*"'];
  const faults: string[] = [];
  if (utf8Length(pattern) > MAX_INTAKE_BYTES) faults.push(`it is longer than ${MAX_INTAKE_BYTES} bytes`);
  const tokens = pattern.split(".");
  for (const [index, token] of tokens.entries()) {
    if (isVariable(token, index, tokens.length)) continue;
    const fault = literalTokenFault(token, index);
    if (fault) faults.push(`its token ${quote(token)} ${fault}`);
  }
  const first = tokens[0] ?? "";
  if (isVariable(first, 0, tokens.length)) {
    // A pattern open at its start would also take replies, key-value writes and the server's own subjects.
    faults.push("its first token must be a literal");
  }
  const keys = tokens.filter((token) => token === KEY).length;
  if (keys !== 1) faults.push(`it must have exactly one token {key} and has ${keys}`);
  if (!tokens.includes("*") && tokens.at(-1) !== ">")
    faults.push("it must have a * (or a final >) that becomes the type");
  if (overlapsLanes(tokens, subject)) {
    faults.push(
      `it overlaps ${subject}.>, where the lanes are, so an unmapped event could be stored as if it had a lane`,
    );
  }
  return faults;
}

const KEY = "{key}";

/** Takes apart a pattern that has no faults. */
function readIntake(pattern: string): Intake {
  const variables = pattern.split(".").filter((token) => token === "*" || token === KEY);
  const keyWildcard = variables.indexOf(KEY) + 1;
  return Object.freeze({
    pattern,
    wildcard: pattern.replace(KEY, "*"),
    keyWildcard,
    typeWildcards: Object.freeze(
      variables.map((_, index) => index + 1).filter((place) => place !== keyWildcard),
    ),
    typeTail: pattern.endsWith(".>"),
  });
}

function isVariable(token: string, index: number, count: number): boolean {
  return token === "*" || token === KEY || (token === ">" && index === count - 1);
}

/** True when some subject matches both the pattern and `<subject>.>`. */
function overlapsLanes(tokens: readonly string[], subject: string): boolean {
  const roots = subject.split(".");
  for (const [index, root] of roots.entries()) {
    const token = tokens[index];
    if (token === undefined) return false;
    if (token === ">") return true;
    if (token !== root && token !== "*" && token !== KEY) return false;
  }
  return tokens.length > roots.length;
}
