import { describeValue, quote } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import { defaultIntake, type Intake, intakeFaults, parseIntake } from "./intake-pattern.js";
import { isLaneCount, LANE_HASHES, type LaneHash, MAX_LANES } from "./lane-hash.js";
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
  /** One or more literal subject tokens, at most 256 bytes: `orders`. */
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

/** The longest `subject` of a layout, in bytes of UTF-8. */
export const MAX_SUBJECT_BYTES = 256;

/** The highest generation. */
export const MAX_GENERATION = 1_000_000_000;

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
  if (typeof layout !== "object" || layout === null)
    return [`it must be an object, and this is ${describeValue(layout)}`];
  const { subject, generation, lanes, hash, mapping, intake } = layout as {
    [field in keyof LaneLayout]?: unknown;
  };
  const faults = subjectFaults(subject);
  const subjectIsUsable = faults.length === 0;
  if (!isGeneration(generation)) {
    faults.push(
      `generation must be a whole number from 1 to ${MAX_GENERATION}, and this is ${describeValue(generation)}`,
    );
  }
  if (!isLaneCount(lanes))
    faults.push(`lanes must be a whole number from 1 to ${MAX_LANES}, and this is ${describeValue(lanes)}`);
  if (!LANE_HASHES.includes(hash as LaneHash)) {
    faults.push(`hash must be one of ${LANE_HASHES.join(", ")}, and this is ${describeValue(hash)}`);
  }
  if (!MAPPINGS.includes(mapping as Mapping)) {
    faults.push(`mapping must be one of ${MAPPINGS.join(", ")}, and this is ${describeValue(mapping)}`);
  } else if (mapping === "publisher") {
    if (intake !== undefined)
      faults.push(
        'intake is for the mappings "stream" and "account"; with "publisher" nobody would publish to it',
      );
  } else {
    if (hash !== "fnv1a")
      faults.push(
        `hash must be "fnv1a" with the mapping "${mapping}": it is the only one the server computes`,
      );
    if (intake !== undefined && subjectIsUsable) {
      faults.push(
        ...intakeFaults(intake, subject as string).map(
          (fault) => `intake ${describeValue(intake)}: ${fault}`,
        ),
      );
    } else if (subjectIsUsable) {
      // A root such as "in" lies over the default intake.
      const standard = defaultIntake(subject as string);
      faults.push(
        ...intakeFaults(standard, subject as string).map(
          (fault) => `intake: the default ${quote(standard)} does not fit, so name one: ${fault}`,
        ),
      );
    }
  }
  return faults;
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

function isGeneration(generation: unknown): boolean {
  return (
    Number.isInteger(generation) && (generation as number) >= 1 && (generation as number) <= MAX_GENERATION
  );
}

function subjectFaults(subject: unknown): string[] {
  if (typeof subject !== "string" || subject === "") {
    return [
      `subject must be one or more literal tokens such as "orders", and this is ${describeValue(subject)}`,
    ];
  }
  const faults: string[] = [];
  if (utf8Length(subject) > MAX_SUBJECT_BYTES)
    faults.push(`subject is longer than ${MAX_SUBJECT_BYTES} bytes`);
  for (const [index, token] of subject.split(".").entries()) {
    const fault = literalTokenFault(token, index);
    if (fault) faults.push(`subject ${quote(subject)}: its token ${quote(token)} ${fault}`);
  }
  return faults;
}
