import type { ErrorCode } from "./error-code.js";

/** Shared by every installed copy of the package, so that `LanekeeperError.is` agrees across copies. */
const brand = Symbol.for("lanekeeper.error");

/**
 * The one error class of Lanekeeper. `code` is stable; `message` says what happened and what to do about it;
 * `cause` is the error underneath, where there is one.
 */
export class LanekeeperError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "LanekeeperError";
    this.code = code;
    Object.defineProperty(this, brand, { value: true });
  }

  /** Whether `error` is a LanekeeperError, also one made by another installed copy of the package. */
  static is(error: unknown): error is LanekeeperError {
    return typeof error === "object" && error !== null && (error as Record<symbol, unknown>)[brand] === true;
  }
}
