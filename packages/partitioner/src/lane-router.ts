import { BoundedCache } from "./bounded-cache.js";
import { describeValue } from "./describe-value.js";
import { PartitionerError } from "./errors.js";
import type { Intake } from "./intake-pattern.js";
import { fillIntake } from "./intake-subject.js";
import { encodeKey } from "./key-token.js";
import { hashOf } from "./lane-hash.js";
import { type LaneLayout, laneRoot, layoutIntake, validateLayout } from "./lane-layout.js";
import {
  checkLane,
  decodeSubjectKey,
  decodeSubjectType,
  type ParsedLaneSubject,
  splitLaneSubject,
} from "./lane-subject.js";
import { encodeType } from "./type-token.js";

/** Where a key's events go. */
export interface Route {
  readonly key: string;
  /** The key's canonical token. */
  readonly token: string;
  /** 0 to lanes − 1. */
  readonly lane: number;
  /** `<root>.<lane>.<key token>.`, to which a type as `encodeType` gives it is appended. */
  readonly subjectPrefix: string;
}

/** Where an event goes. */
export interface Address {
  readonly route: Route;
  /** As `laneSubject` writes it. */
  readonly subject: string;
}

/** What is known of a key: its route, and its subject with the type it was last asked with. */
interface KnownKey {
  readonly route: Route;
  type: string | undefined;
  subject: string;
}

/**
 * Lane subjects of one layout, for hot paths: the layout is checked once, and what was computed
 * for a key or a type is kept for as long as it is used.
 * Gives the same answers and errors as `laneSubject`, `intakeSubject` and `parseLaneSubject`.
 */
export class LaneRouter {
  /** A frozen copy of the layout that was given. */
  readonly layout: Readonly<LaneLayout>;
  readonly #root: string;
  readonly #intake: Intake | undefined;
  readonly #byKey: BoundedCache<KnownKey>;
  readonly #byToken: BoundedCache<Route>;
  readonly #encodedTypes = new BoundedCache<{ readonly text: string }>(MAX_TYPES);
  readonly #decodedTypes = new BoundedCache<{ readonly text: string }>(MAX_TYPES);

  /**
   * @param maxKeys keys remembered in each direction; 2 to 1,000,000, default 32,768
   * @throws PartitionerError INVALID_LAYOUT (also for `maxKeys` out of range)
   */
  constructor(layout: LaneLayout, maxKeys = 32_768) {
    if (!Number.isInteger(maxKeys) || maxKeys < 2 || maxKeys > 1_000_000) {
      throw new PartitionerError(
        "INVALID_LAYOUT",
        `maxKeys must be a whole number from 2 to 1000000, and this is ${describeValue(maxKeys)}`,
      );
    }
    this.layout = Object.freeze({ ...validateLayout(layout) });
    this.#root = laneRoot(this.layout);
    this.#intake = this.layout.mapping === "publisher" ? undefined : layoutIntake(this.layout);
    this.#byKey = new BoundedCache(maxKeys);
    this.#byToken = new BoundedCache(maxKeys);
  }

  /**
   * The route of a key.
   *
   * @throws PartitionerError INVALID_KEY
   */
  route(key: string): Route {
    return this.#known(key).route;
  }

  /**
   * `laneSubject` of the layout.
   *
   * @throws PartitionerError INVALID_KEY, INVALID_TYPE
   */
  subject(event: { key: string; type: string }): string {
    return this.address(event.key, event.type).subject;
  }

  /**
   * Route and subject in one look-up. The object is good until the next call for this key.
   *
   * @throws PartitionerError INVALID_KEY, INVALID_TYPE
   */
  address(key: string, type: string): Address {
    const known = this.#known(key);
    if (known.type !== type || known.subject === "") {
      known.subject = known.route.subjectPrefix + this.#encodeType(type);
      known.type = type;
    }
    return known;
  }

  /**
   * The subject a publisher publishes to: `laneSubject` of the layout, or `intakeSubject` where the server
   * chooses the lane.
   *
   * @throws PartitionerError INVALID_KEY, INVALID_TYPE
   */
  publishSubject(event: { key: string; type: string }): string {
    if (this.#intake === undefined) return this.subject(event);
    return fillIntake(this.#intake, this.route(event.key).token, event.type);
  }

  /**
   * `parseLaneSubject` of the layout.
   *
   * @throws PartitionerError FOREIGN_SUBJECT
   */
  parse(subject: string): ParsedLaneSubject {
    const { lane, token, type } = splitLaneSubject(this.#root, subject);
    const route = this.#routeOfToken(token, subject);
    checkLane(lane, route.lane, this.layout, subject);
    return { lane: route.lane, key: route.key, type: this.#decodeType(type, subject) };
  }

  #known(key: string): KnownKey {
    const found = this.#byKey.get(key);
    if (found !== undefined) return found;
    const known = { route: this.#makeRoute(key, encodeKey(key)), type: undefined, subject: "" };
    this.#byKey.set(key, known);
    return known;
  }

  #routeOfToken(token: string, subject: string): Route {
    const known = this.#byToken.get(token);
    if (known !== undefined) return known;
    const route = this.#makeRoute(decodeSubjectKey(token, subject), token);
    this.#byToken.set(token, route);
    return route;
  }

  #makeRoute(key: string, token: string): Route {
    const lane = hashOf(key, token, this.layout.hash) % this.layout.lanes;
    return Object.freeze({ key, token, lane, subjectPrefix: `${this.#root}.${lane}.${token}.` });
  }

  #encodeType(type: string): string {
    const known = this.#encodedTypes.get(type);
    if (known !== undefined) return known.text;
    const text = encodeType(type);
    this.#encodedTypes.set(type, { text });
    return text;
  }

  #decodeType(encoded: string, subject: string): string {
    const known = this.#decodedTypes.get(encoded);
    if (known !== undefined) return known.text;
    const text = decodeSubjectType(encoded, subject);
    this.#decodedTypes.set(encoded, { text });
    return text;
  }
}

/** Types are few in a sane application; the bound is for the others. */
const MAX_TYPES = 1_024;
