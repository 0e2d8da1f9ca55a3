import { describeValue, quote } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import { decodeKey, encodeKey } from "./key-token.js";
import { hashOf, isLaneCount } from "./lane-hash.js";
import { type LaneLayout, laneRoot, validateLayout } from "./lane-layout.js";
import { decodeType, encodeType } from "./type-token.js";

/** What a lane subject says. */
export interface ParsedLaneSubject {
  /** 0 to lanes − 1. */
  lane: number;
  key: string;
  type: string;
}

/**
 * The subject an event is stored under: `<root>.<lane>.<key token>.<type>`, the lane computed from the layout.
 * Checks the whole layout at every call; {@link LaneRouter} does so once.
 *
 * @throws PartitionerError INVALID_LAYOUT, INVALID_KEY, INVALID_TYPE
 */
export function laneSubject(layout: LaneLayout, event: { key: string; type: string }): string {
  validateLayout(layout);
  const token = encodeKey(event.key);
  const lane = hashOf(event.key, token, layout.hash) % layout.lanes;
  return `${laneRoot(layout)}.${lane}.${token}.${encodeType(event.type)}`;
}

/** The filter that matches one lane's events and nothing else: `<root>.<lane>.>`.
 *
 * @param lane 0 to lanes − 1
 * @throws PartitionerError INVALID_LAYOUT, INVALID_LANES
 */
export function laneFilter(layout: LaneLayout, lane: number): string {
  validateLayout(layout);
  if (!isLaneCount(lane + 1) || lane >= layout.lanes) {
    throw new PartitionerError(
      "INVALID_LANES",
      `the lane must be a whole number from 0 to ${layout.lanes - 1}, and this is ${describeValue(lane)}`,
    );
  }
  return `${laneRoot(layout)}.${lane}.>`;
}

/**
 * Reads a stored event's subject: the inverse of {@link laneSubject}.
 *
 * @throws PartitionerError INVALID_LAYOUT; FOREIGN_SUBJECT, saying which part is at fault, when the root,
 *   the lane, the key token or the type is not what this layout's publishers write, or the lane is not
 *   the key's: such an event must not be handled, since its order is unknown
 */
export function parseLaneSubject(layout: LaneLayout, subject: string): ParsedLaneSubject {
  validateLayout(layout);
  const parts = splitLaneSubject(laneRoot(layout), subject);
  const key = decodeSubjectKey(parts.token, subject);
  checkLane(parts.lane, hashOf(key, parts.token, layout.hash) % layout.lanes, layout, subject);
  return { lane: Number(parts.lane), key, type: decodeSubjectType(parts.type, subject) };
}

/** Cuts a subject behind the root into its three parts, all still as written.
 *
 * @throws PartitionerError FOREIGN_SUBJECT when it has another root or too few tokens
 */
export function splitLaneSubject(
  root: string,
  subject: string,
): { lane: string; token: string; type: string } {
  if (typeof subject !== "string" || !subject.startsWith(root) || subject[root.length] !== ".") {
    throw foreign(subject, `its root is not ${quote(root)}`);
  }
  const laneStart = root.length + 1;
  const laneEnd = subject.indexOf(".", laneStart);
  const tokenEnd = laneEnd === -1 ? -1 : subject.indexOf(".", laneEnd + 1);
  if (tokenEnd === -1) throw foreign(subject, "a lane, a key and a type must follow its root");
  return {
    lane: subject.slice(laneStart, laneEnd),
    token: subject.slice(laneEnd + 1, tokenEnd),
    type: subject.slice(tokenEnd + 1),
  };
}

/** @throws PartitionerError FOREIGN_SUBJECT unless the lane as written is a lane of the layout and the key's own. */
export function checkLane(written: string, lane: number, layout: LaneLayout, subject: string): void {
  if (written === String(lane)) return;
  if (!/^(0|[1-9]\d{0,3})$/.test(written) || Number(written) >= layout.lanes) {
    throw foreign(subject, `its lane ${quote(written)} is not one of 0 to ${layout.lanes - 1}`);
  }
  throw foreign(
    subject,
    `its lane is ${written}, and the key's is ${lane} of ${layout.lanes} by ${layout.hash}`,
  );
}

/** @throws PartitionerError FOREIGN_SUBJECT unless the token is a key's canonical one. */
export function decodeSubjectKey(token: string, subject: string): string {
  try {
    return decodeKey(token);
  } catch (cause) {
    throw foreign(subject, `its key is not canonical (${describeCause(cause)})`, cause);
  }
}

/** @throws PartitionerError FOREIGN_SUBJECT unless the type is spelled canonically. */
export function decodeSubjectType(type: string, subject: string): string {
  try {
    return decodeType(type);
  } catch (cause) {
    throw foreign(subject, `its type is not canonical (${describeCause(cause)})`, cause);
  }
}

function foreign(subject: unknown, why: string, cause?: unknown): PartitionerError {
  return new PartitionerError(
    "FOREIGN_SUBJECT",
    `the subject ${describeValue(subject)} was not written by a publisher of this layout: ${why}`,
    cause === undefined ? undefined : { cause },
  );
}

function describeCause(cause: unknown): string {
  return cause instanceof Error ? cause.message : describeValue(cause);
}
