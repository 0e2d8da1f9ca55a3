import { describeValue, quote } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import { defaultIntake, type Intake, intakeFaults, parseIntake } from "./intake-pattern.js";
import { LANE_HASHES, type LaneHash, MAX_LANES } from "./lane-hash.js";
import { literalTokenFault } from "./literal-token.js";
import { utf8Length } from "./token-codec.js";

/**
 * Who puts an event into its lane: its `publisher`, the `stream`'s subject transform, or the
 * `mappings` of the server's `account`.
 */
export type Mapping = "publisher" | "stream" | "account";

/** Every mapping; the first is the default. */
export const MAPPINGS: readonly Mapping[] = Object.freeze(["publisher", "stream", "account"] as const);

/** How a stream is cut into lanes. */
export interface LaneLayout {
  /** One or more literal subject tokens, at most 128 bytes: `orders`. */
  subject: string;
  /** 1 and rising with every change of the layout. */
  generation: number;
  /** 1 to 4096. */
  lanes: number;
  /** `fnv1a` where the server maps: it is the only hash the server knows. */
  hash: LaneHash;
  mapping: Mapping;
  /** Where the server maps: the pattern publishers publish to; default `in.<subject>.{key}.*`. */
  intake?: string;
}

/**
 * The longest `subject` of a layout, in bytes of UTF-8. It is in the stream's configuration once per lane,
 * and that must fit into one request: 4,096 times the longest is below the server's default max_payload of 1 MiB.
 */
const MAX_SUBJECT_BYTES = 128;

/** The highest generation. */
const MAX_GENERATION = 1_000_000_000;

/**
 * Returns the layout when nothing is wrong with it.
 *
 * @throws PartitionerError INVALID_LAYOUT whose message names every fault at once
 */
export function validateLayout(layout: LaneLayout): LaneLayout {
  const faults = layoutFaults(layout);
  if (faults.length > 0) {
    throw new PartitionerError("INVALID_LAYOUT", `the layout cannot be used: ${faults.join("; ")}`);
  }
  return layout;
}

/** What is wrong with a layout, each fault one sentence fragment that starts with the field's name; empty when nothing is. */
export function layoutFaults(layout: unknown): string[] {
  if (typeof layout !== "object" || layout === null) {
    return [`it must be an object, and this is ${describeValue(layout)}`];
  }
  const given = layout as GivenLayout;
  return [
    ...subjectFaults(given.subject),
    ...wholeNumberFaults("generation", given.generation, MAX_GENERATION),
    ...wholeNumberFaults("lanes", given.lanes, MAX_LANES),
    ...choiceFaults("hash", given.hash, LANE_HASHES),
    ...choiceFaults("mapping", given.mapping, MAPPINGS),
    ...mappingFaults(given),
  ];
}

/**
 * The subject root of a layout's lanes: the subject in generation 1, `<subject>.g<generation>` after it,
 * so that a permission on `<subject>.>` covers every generation.
 */
export function laneRoot(layout: LaneLayout): string {
  return layout.generation === 1 ? layout.subject : `${layout.subject}.g${layout.generation}`;
}

/**
 * The layout's intake, taken apart; the default one where the layout names none.
 *
 * @throws PartitionerError INVALID_INTAKE when the mapping is `publisher` (there is no intake) or the pattern is at fault
 */
export function layoutIntake(layout: LaneLayout): Intake {
  if (layout.mapping === "publisher") {
    throw new PartitionerError(
      "INVALID_INTAKE",
      'a layout with the mapping "publisher" has no intake; publish to laneSubject() instead',
    );
  }
  return parseIntake(layout.intake ?? defaultIntake(layout.subject), layout.subject);
}

type GivenLayout = { [field in keyof LaneLayout]?: unknown };

function wholeNumberFaults(field: string, value: unknown, highest: number): string[] {
  if (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= highest) return [];
  return [`${field} must be a whole number from 1 to ${highest}, and this is ${describeValue(value)}`];
}

function choiceFaults(field: string, value: unknown, choices: readonly unknown[]): string[] {
  if (choices.includes(value)) return [];
  return [`${field} must be one of ${choices.join(", ")}, and this is ${describeValue(value)}`];
}

/** What the mapping asks of the hash and the intake. */
function mappingFaults({ subject, hash, mapping, intake }: GivenLayout): string[] {
  if (mapping === "publisher") {
    if (intake === undefined) return [];
    return ['intake is for the mappings "stream" and "account"; with "publisher" nobody would publish to it'];
  }
  if (mapping !== "stream" && mapping !== "account") return [];
  const faults: string[] = [];
  if (hash !== "fnv1a") {
    faults.push(`hash must be "fnv1a" with the mapping "${mapping}": it is the only one the server computes`);
  }
  // Without a usable subject there is nothing to hold the intake against.
  if (typeof subject !== "string" || subjectFaults(subject).length > 0) return faults;
  const pattern = intake === undefined ? defaultIntake(subject) : intake;
  // A subject such as "in" lies over the default intake.
  const hint = intake === undefined ? " (the default; name one that fits)" : "";
  for (const fault of intakeFaults(pattern, subject)) {
    faults.push(`intake ${describeValue(pattern)}${hint}: ${fault}`);
  }
  return faults;
}

function subjectFaults(subject: unknown): string[] {
  if (typeof subject !== "string" || subject === "") {
    return [
      `subject must be one or more literal tokens such as "orders", and this is ${describeValue(subject)}`,
    ];
  }
  const faults: string[] = [];
  if (utf8Length(subject) > MAX_SUBJECT_BYTES) {
    faults.push(`subject is longer than ${MAX_SUBJECT_BYTES} bytes`);
  }
  for (const [index, token] of subject.split(".").entries()) {
    const fault = literalTokenFault(token, index);
    if (fault) faults.push(`subject ${quote(subject)}: its token ${quote(token)} ${fault}`);
  }
  return faults;
}
