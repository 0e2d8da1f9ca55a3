export { PartitionerError, type PartitionerErrorCode } from "./errors.js";
export { type Intake, parseIntake } from "./intake-pattern.js";
export { intakeSubject, intakeWildcard } from "./intake-subject.js";
export { decodeKey, encodeKey } from "./key-token.js";
export { hashKey, LANE_HASHES, type LaneHash, laneOf, MAX_LANES } from "./lane-hash.js";
export {
  type LaneLayout,
  laneRoot,
  layoutFaults,
  layoutIntake,
  MAPPINGS,
  type Mapping,
  validateLayout,
} from "./lane-layout.js";
export { type Address, LaneRouter, type Route } from "./lane-router.js";
export { type LaneShares, laneShares } from "./lane-shares.js";
export { laneFilter, laneSubject, type ParsedLaneSubject, parseLaneSubject } from "./lane-subject.js";
export { type LayoutConfig, layoutConfig } from "./layout-config.js";
export { layoutFromMetadata } from "./layout-metadata.js";
export { decodeType, encodeType } from "./type-token.js";
