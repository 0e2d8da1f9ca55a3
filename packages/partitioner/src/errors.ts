/** Known to every installed copy of this package, so that two copies recognise each other's errors. */
const BRAND = Symbol.for("@lanekeeper/partitioner/PartitionerError");

/**
 * What was wrong, as a stable code; callers steer by it and never by the message.
 *
 * - `INVALID_KEY`: a key that is no non-empty, well-formed string, or whose token is over 512 bytes.
 * - `INVALID_TYPE`: the same for an event type, or a type that does not fit the intake's wildcards.
 * - `INVALID_TOKEN`: a subject token that is not the one canonical spelling of a key or type.
 * - `INVALID_LAYOUT`: a layout, or the stream metadata that carries one, is at fault.
 * - `INVALID_LANES`: a lane count or a lane number out of range.
 * - `INVALID_HASH`: an unknown hash name.
 * - `INVALID_INTAKE`: an intake pattern is at fault, or the layout has no intake.
 * - `FOREIGN_SUBJECT`: a subject that no publisher of this layout would have written.
 */
export type PartitionerErrorCode =
  | "INVALID_KEY"
  | "INVALID_TYPE"
  | "INVALID_TOKEN"
  | "INVALID_LAYOUT"
  | "INVALID_LANES"
  | "INVALID_HASH"
  | "INVALID_INTAKE"
  | "FOREIGN_SUBJECT";

/** The one error this package throws: the message says what was given and what to do. */
export class PartitionerError extends Error {
  override readonly name = "PartitionerError";
  readonly code: PartitionerErrorCode;

  constructor(code: PartitionerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** True for a PartitionerError of any installed copy of this package, also one of another realm. */
  static is(error: unknown): error is PartitionerError {
    return typeof error === "object" && error !== null && (error as { [BRAND]?: unknown })[BRAND] === true;
  }
}
