import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeKey,
  decodeType,
  encodeKey,
  encodeType,
  hashKey,
  intakeSubject,
  LANE_HASHES,
  type LaneLayout,
  LaneRouter,
  laneOf,
  laneShares,
  laneSubject,
  layoutConfig,
  layoutFromMetadata,
  MAPPINGS,
  type PartitionerError,
  parseLaneSubject,
} from "./index.js";

/** Characters that NATS, percent-encoding or Unicode could trip over, among ordinary ones. */
const unit = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...'.*>% \t\r\n\0\x01\x1f\x7f\x80{}$"\\2EeFfaAzZ09-_') },
  { weight: 2, arbitrary: fc.string({ unit: "binary", minLength: 1, maxLength: 1 }) },
  { weight: 2, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }) },
);
const key = fc
  .array(unit, { minLength: 1, maxLength: 40 })
  .map((units) => units.join(""))
  .filter((text) => text.isWellFormed());
const typeToken = key.map((text) => text.replaceAll(".", "")).filter((text) => text !== "");
const type = fc
  .array(typeToken, { minLength: 1, maxLength: 3 })
  .map((tokens) => tokens.join("."))
  .filter(fits(encodeType));
const hash = fc.constantFrom(...LANE_HASHES);
const lanes = fc.integer({ min: 1, max: 4096 });
const layout: fc.Arbitrary<LaneLayout> = fc
  .record({
    subject: fc.constantFrom("orders", "shop.eu.orders", "köln"),
    generation: fc.integer({ min: 1, max: 1_000_000_000 }),
    lanes,
    hash,
    mapping: fc.constantFrom(...MAPPINGS),
  })
  .map((made) => (made.mapping === "publisher" ? made : { ...made, hash: "fnv1a", intake: "in.*.{key}.>" }));

/** What must never be in a token. */
const FORBIDDEN = /[\0-\x20\x7f.*>]/;

describe("keys", () => {
  test("R02, R03: every key comes back from its token, which has nothing NATS would trip over", () => {
    fc.assert(
      fc.property(key, (given) => {
        const token = encodeKey(given);
        expect(token).not.toMatch(FORBIDDEN);
        expect(token).not.toBe("");
        expect(decodeKey(token)).toBe(given);
        expect(Buffer.from(token, "utf8").toString("utf8")).toBe(token);
      }),
      { numRuns: 2_000 },
    );
  });

  test("a key has one token: whatever text decodeKey takes is what encodeKey would write", () => {
    fc.assert(
      fc.property(fc.oneof(key, key.map(encodeKey).chain(mutated)), (text) => {
        const decoded = attempt(() => decodeKey(text));
        if (decoded.ok) expect(encodeKey(decoded.value)).toBe(text);
        else expect(decoded.code).toBe("INVALID_TOKEN");
      }),
      { numRuns: 3_000 },
    );
  });

  test("R03, R04: any value at all is a token or a typed error", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything(),
          fc.string({ unit: "binary", maxLength: 600 }),
          fc
            .array(fc.integer({ min: 0xd000, max: 0xe100 }), { maxLength: 5 })
            .map((codes) => String.fromCharCode(...codes)),
        ),
        (given) => {
          const result = attempt(() => encodeKey(given as string));
          if (result.ok) expect(decodeKey(result.value)).toBe(given);
          else expect(result.code).toBe("INVALID_KEY");
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe("types", () => {
  test("R03: every type comes back, and no text but its own spelling is taken for it", () => {
    fc.assert(
      fc.property(type, (given) => {
        const encoded = encodeType(given);
        expect(decodeType(encoded)).toBe(given);
        for (const token of encoded.split(".")) expect(token).not.toMatch(FORBIDDEN);
      }),
    );
    fc.assert(
      fc.property(type.map(encodeType).chain(mutated), (text) => {
        const decoded = attempt(() => decodeType(text));
        if (decoded.ok) expect(encodeType(decoded.value)).toBe(text);
        else expect(decoded.code).toBe("INVALID_TOKEN");
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("lanes", () => {
  test("R01: a lane is the unsigned hash modulo the lane count", () => {
    fc.assert(
      fc.property(key, lanes, hash, (given, count, by) => {
        const number = hashKey(given, by);
        expect(number).toBe(Number(BigInt.asUintN(32, BigInt(number))));
        const lane = laneOf(given, count, by);
        expect(lane).toBe(number % count);
        expect(lane).toBeGreaterThanOrEqual(0);
        expect(lane).toBeLessThan(count);
      }),
      { numRuns: 2_000 },
    );
  });

  test("laneShares loses no event and no key", () => {
    fc.assert(
      fc.property(
        fc.array(key, { maxLength: 50 }),
        fc.integer({ min: 1, max: 50 }),
        hash,
        (keys, count, by) => {
          const shares = laneShares(keys, count, by);
          expect(shares.events).toBe(keys.length);
          expect(shares.keys).toBe(new Set(keys).size);
          expect(shares.perLane.reduce((sum, lane) => sum + lane.events, 0)).toBe(shares.events);
          expect(shares.perLane.reduce((sum, lane) => sum + lane.keys, 0)).toBe(shares.keys);
        },
      ),
    );
  });
});

describe("layouts", () => {
  test("a lane subject comes back, the same from the router, and lies in one of the stream's subjects", () => {
    fc.assert(
      fc.property(layout, key, type, (given, ofKey, ofType) => {
        const event = { key: ofKey, type: ofType };
        const subject = laneSubject(given, event);
        const router = new LaneRouter(given);
        const lane = laneOf(ofKey, given.lanes, given.hash);
        expect(parseLaneSubject(given, subject)).toEqual({ lane, ...event });
        expect(router.parse(subject)).toEqual({ lane, ...event });
        expect(router.subject(event)).toBe(subject);
        expect(attempt(() => router.publishSubject(event))).toEqual(
          given.mapping === "publisher"
            ? { ok: true, value: subject }
            : attempt(() => intakeSubject(given, event)),
        );
        if (given.mapping !== "stream")
          expect(layoutConfig(given).subjects.filter((filter) => matches(filter, subject))).toHaveLength(1);
      }),
    );
  });

  test("a subject with anything changed is foreign or another event's, spelled canonically", () => {
    fc.assert(
      fc.property(layout, key, type, fc.context(), (given, ofKey, ofType, context) => {
        const subject = laneSubject(given, { key: ofKey, type: ofType });
        const change = fc.sample(mutated(subject), { numRuns: 5, seed: subject.length });
        for (const text of change) {
          context.log(text);
          const parsed = attempt(() => parseLaneSubject(given, text));
          if (parsed.ok) expect(laneSubject(given, parsed.value)).toBe(text);
          else expect(parsed.code).toBe("FOREIGN_SUBJECT");
        }
      }),
    );
  });

  test("an intake subject matches the intake and stays out of the lanes of every generation", () => {
    fc.assert(
      fc.property(layout, key, typeToken, typeToken, (given, ofKey, first, second) => {
        fc.pre(given.mapping !== "publisher");
        const intake = attempt(() => intakeSubject(given, { key: ofKey, type: `${first}.${second}` }));
        fc.pre(intake.ok);
        const src = layoutConfig(given).transform?.src ?? "";
        expect(matches(src, intake.value)).toBe(true);
        expect(matches(`${given.subject}.>`, intake.value)).toBe(false);
      }),
    );
  });

  test("a layout comes back from its metadata", () => {
    fc.assert(
      fc.property(layout, (given) => {
        expect(layoutFromMetadata(layoutConfig(given).metadata)).toEqual(given);
      }),
    );
  });
});

/** The text with one character inserted, removed or replaced. */
function mutated(text: string): fc.Arbitrary<string> {
  return fc
    .tuple(fc.nat(text.length), fc.integer({ min: 0, max: 1 }), fc.oneof(fc.constant(""), unit))
    .map(([at, removed, inserted]) => text.slice(0, at) + inserted + text.slice(at + removed));
}

/** NATS's matching, for a filter without literals that need escaping. */
function matches(filter: string, subject: string): boolean {
  const tokens = subject.split(".");
  const filters = filter.split(".");
  if (filters.at(-1) !== ">" && filters.length !== tokens.length) return false;
  return filters.every((token, i) =>
    token === ">" ? tokens.length > i : token === "*" ? tokens[i] !== undefined : token === tokens[i],
  );
}

function fits(encode: (text: string) => string): (text: string) => boolean {
  return (text) => attempt(() => encode(text)).ok;
}

function attempt<T>(action: () => T): { ok: true; value: T } | { ok: false; code: string } {
  try {
    return { ok: true, value: action() };
  } catch (error) {
    return { ok: false, code: (error as PartitionerError).code };
  }
}
