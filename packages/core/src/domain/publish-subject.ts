import {
  type Address,
  intakeSubject,
  type LaneLayout,
  LaneRouter,
  layoutIntake,
  PartitionerError,
  type Route,
} from "@lanekeeper/partitioner";
import { LanekeeperError } from "./lanekeeper-error.js";

/** Writes the subjects to publish to: a lane's, or the intake's where the server chooses the lane. */
export class PublishSubjects {
  readonly #layout: LaneLayout;
  readonly #router: LaneRouter;
  readonly #byServer: boolean;
  /** Types already found to fit the intake, as their encoded tokens. Types are few; the bound is for when they are not. */
  readonly #intakeTypes = new Map<string, (token: string) => string>();

  constructor(layout: LaneLayout) {
    this.#layout = layout;
    this.#router = new LaneRouter(layout);
    this.#byServer = layout.mapping !== "publisher";
  }

  /** @throws LanekeeperError INVALID_KEY, INVALID_TYPE */
  address(key: string, type: string): Address {
    try {
      if (!this.#byServer) return this.#router.address(key, type);
      return { route: this.#router.route(key), subject: this.#intakeSubject({ key, type }) };
    } catch (cause) {
      throw translate(cause);
    }
  }

  #intakeSubject(event: { key: string; type: string }): string {
    const { token } = this.#router.route(event.key);
    const known = this.#intakeTypes.get(event.type);
    if (known !== undefined) return known(token);
    const write = this.#intakeWriter(event);
    if (this.#intakeTypes.size >= MAX_TYPES) this.#intakeTypes.clear();
    this.#intakeTypes.set(event.type, write);
    return write(token);
  }

  /** The intake with the type filled in, cut where the key's token goes. */
  #intakeWriter(event: { key: string; type: string }): (token: string) => string {
    const filled = intakeSubject(this.#layout, event).split(".");
    const place = layoutIntake(this.#layout).pattern.split(".").indexOf("{key}");
    const before = filled.slice(0, place).map((token) => `${token}.`);
    const after = filled.slice(place + 1).map((token) => `.${token}`);
    const head = before.join("");
    const tail = after.join("");
    return (token) => head + token + tail;
  }
}

/** The subjects of all events of a key. */
export function allOfKey(route: Route): string {
  return `${route.subjectPrefix}>`;
}

const MAX_TYPES = 1_024;

function translate(cause: unknown): unknown {
  if (!PartitionerError.is(cause)) return cause;
  if (cause.code === "INVALID_KEY" || cause.code === "INVALID_TYPE") {
    return new LanekeeperError(cause.code, cause.message, { cause });
  }
  return cause;
}
