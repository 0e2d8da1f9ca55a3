import { quote } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import type { LaneHash } from "./lane-hash.js";
import { type LaneLayout, layoutFaults, layoutIntake, type Mapping } from "./lane-layout.js";

/** The version of the metadata that this package writes and reads. */
const METADATA_VERSION = "1";

/** The start of every metadata key of ours. */
const METADATA_PREFIX = "lanekeeper.";

/** A valid layout as stream metadata; the intake is spelled out, also when it is the default. */
export function layoutMetadata(layout: LaneLayout): Record<string, string> {
  return {
    "lanekeeper.version": METADATA_VERSION,
    "lanekeeper.subject": layout.subject,
    "lanekeeper.generation": String(layout.generation),
    "lanekeeper.lanes": String(layout.lanes),
    "lanekeeper.hash": layout.hash,
    "lanekeeper.mapping": layout.mapping,
    ...(layout.mapping === "publisher" ? {} : { "lanekeeper.intake": layoutIntake(layout).pattern }),
  };
}

/**
 * Reads the layout out of a stream's metadata: the inverse of `layoutConfig(layout).metadata`.
 * Keys of others, also unknown ones under `lanekeeper.`, are passed over.
 *
 * @returns undefined when the stream carries nothing of ours
 * @throws PartitionerError INVALID_LAYOUT when a newer version wrote it or anything is missing or
 *   damaged, naming every fault: guessing a layout could break the order of every key
 */
export function layoutFromMetadata(metadata: Record<string, string> | undefined): LaneLayout | undefined {
  if (metadata === undefined || !Object.keys(metadata).some((name) => name.startsWith(METADATA_PREFIX)))
    return undefined;
  const version = metadata["lanekeeper.version"];
  if (version !== METADATA_VERSION) throw unreadable([versionFault(version)]);
  const missing = REQUIRED.filter((name) => metadata[name] === undefined);
  if (missing.length > 0) throw unreadable(missing.map((name) => `${name} is missing`));
  const layout: LaneLayout = {
    subject: metadata["lanekeeper.subject"] ?? "",
    generation: wholeNumber(metadata["lanekeeper.generation"]),
    lanes: wholeNumber(metadata["lanekeeper.lanes"]),
    hash: metadata["lanekeeper.hash"] as LaneHash,
    mapping: metadata["lanekeeper.mapping"] as Mapping,
  };
  const intake = metadata["lanekeeper.intake"];
  if (intake !== undefined) layout.intake = intake;
  const faults = layoutFaults(layout);
  if (intake === undefined && layout.mapping !== "publisher") faults.push("lanekeeper.intake is missing");
  if (faults.length > 0) throw unreadable(faults);
  return layout;
}

const REQUIRED = [
  "lanekeeper.subject",
  "lanekeeper.generation",
  "lanekeeper.lanes",
  "lanekeeper.hash",
  "lanekeeper.mapping",
] as const;

function versionFault(version: string | undefined): string {
  if (version === undefined) return "lanekeeper.version is missing";
  if (/^[1-9]\d*$/.test(version))
    return `lanekeeper.version is ${quote(version)} and this package reads ${METADATA_VERSION}; upgrade it`;
  return `lanekeeper.version ${quote(version)} is not a version`;
}

/** NaN for anything but the one spelling of a whole number, so that the layout's own check names it. */
function wholeNumber(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
}

function unreadable(faults: readonly string[]): PartitionerError {
  return new PartitionerError(
    "INVALID_LAYOUT",
    `the layout in the stream's metadata cannot be read: ${faults.join("; ")}; restore the metadata that layoutConfig() gives for the stream's layout`,
  );
}
