import { quote } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import type { Intake } from "./intake-pattern.js";
import { encodeKey } from "./key-token.js";
import { type LaneLayout, layoutIntake, validateLayout } from "./lane-layout.js";
import { encodeType } from "./type-token.js";

/**
 * The subject a publisher publishes to where the server chooses the lane: the intake with the
 * key's token and the type's tokens in the places of its wildcards.
 *
 * @throws PartitionerError INVALID_LAYOUT, INVALID_KEY, INVALID_INTAKE (mapping `publisher`), and
 *   INVALID_TYPE also when the type has not as many tokens as the intake has wildcards for it
 */
export function intakeSubject(layout: LaneLayout, event: { key: string; type: string }): string {
  validateLayout(layout);
  return fillIntake(layoutIntake(layout), encodeKey(event.key), event.type);
}

/**
 * The intake as a NATS subject with wildcards: what a stream with the mapping `stream` listens on.
 *
 * @throws PartitionerError INVALID_LAYOUT, INVALID_INTAKE (mapping `publisher`)
 */
export function intakeWildcard(layout: LaneLayout): string {
  validateLayout(layout);
  return layoutIntake(layout).wildcard;
}

/** The intake with a key token and a type in the places of its wildcards.
 *
 * @throws PartitionerError INVALID_TYPE
 */
export function fillIntake(intake: Intake, key: string, type: string): string {
  const tokens = encodeType(type).split(".");
  const places = intake.typeWildcards.length;
  if (intake.typeTail ? tokens.length <= places : tokens.length !== places) {
    const wanted = intake.typeTail ? `${places + 1} or more` : String(places);
    throw new PartitionerError(
      "INVALID_TYPE",
      `the type ${quote(type)} has ${tokens.length} token(s) and the intake ${quote(intake.pattern)} takes ${wanted}`,
    );
  }
  let next = 0;
  const filled = intake.pattern.split(".").map((token) => {
    if (token === "{key}") return key;
    if (token === "*") return tokens[next++];
    return token === ">" ? tokens.slice(next).join(".") : token;
  });
  return filled.join(".");
}
