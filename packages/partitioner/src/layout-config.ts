import { type LaneLayout, laneRoot, layoutIntake, validateLayout } from "./lane-layout.js";
import { layoutMetadata } from "./layout-metadata.js";

/** What the stream, or the server's mappings, must carry for a layout. */
export interface LayoutConfig {
  /** The stream's subjects. */
  subjects: string[];
  /** For `stream` the stream's `subject_transform`; for `account` one entry of the server's `mappings`. */
  transform?: { src: string; dest: string };
  /** The stream's metadata, all keys starting with `lanekeeper.`. */
  metadata: Record<string, string>;
}

/**
 * What the stream (or the server's mappings) must carry for a layout: for openLanes,
 * nats-server.conf, Terraform.
 *
 * With `publisher` and `account` every lane is a subject of its own, so that the server refuses an
 * event for a lane that does not exist instead of storing what nobody would ever handle. With
 * `stream` the intake is the only subject, so nobody can store an event past the transform.
 *
 * @throws PartitionerError INVALID_LAYOUT
 */
export function layoutConfig(layout: LaneLayout): LayoutConfig {
  validateLayout(layout);
  const metadata = layoutMetadata(layout);
  if (layout.mapping === "publisher") return { subjects: laneSubjects(layout), metadata };
  const { wildcard } = layoutIntake(layout);
  const transform = { src: wildcard, dest: transformDestination(layout) };
  return { subjects: layout.mapping === "stream" ? [wildcard] : laneSubjects(layout), transform, metadata };
}

function laneSubjects(layout: LaneLayout): string[] {
  const root = laneRoot(layout);
  return Array.from({ length: layout.lanes }, (_, lane) => `${root}.${lane}.*.>`);
}

/** `orders.{{partition(12,1)}}.{{wildcard(1)}}.{{wildcard(2)}}`: a mapping function must be a whole token. */
function transformDestination(layout: LaneLayout): string {
  const { keyWildcard, typeWildcards, typeTail } = layoutIntake(layout);
  return [
    laneRoot(layout),
    `{{partition(${layout.lanes},${keyWildcard})}}`,
    `{{wildcard(${keyWildcard})}}`,
    ...typeWildcards.map((place) => `{{wildcard(${place})}}`),
    ...(typeTail ? [">"] : []),
  ].join(".");
}
