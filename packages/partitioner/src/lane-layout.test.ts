import { describe, expect, test } from "vitest";
import { type LaneLayout, laneRoot, layoutFaults, layoutIntake, validateLayout } from "./index.js";

const layout: LaneLayout = {
  subject: "orders",
  generation: 1,
  lanes: 12,
  hash: "murmur3",
  mapping: "publisher",
};
const mapped: LaneLayout = { ...layout, hash: "fnv1a", mapping: "account" };

describe("validateLayout", () => {
  test.each<[string, LaneLayout]>([
    ["a publisher layout", layout],
    ["several subject tokens", { ...layout, subject: "shop.eu.orders" }],
    ["a subject outside ASCII", { ...layout, subject: "bestellungen.köln" }],
    ["a later generation and the most lanes", { ...layout, generation: 1_000_000_000, lanes: 4096 }],
    ["a stream mapping with the default intake", { ...mapped, mapping: "stream" }],
    ["an account mapping with its own intake", { ...mapped, intake: "sensors.*.{key}.*" }],
  ])("takes %s and returns it", (_name, good) => {
    expect(layoutFaults(good)).toEqual([]);
    expect(validateLayout(good)).toBe(good);
  });

  test("reports every fault at once", () => {
    const bad = { subject: "a b.*", generation: 0, lanes: 4097, hash: "md5", mapping: "magic" };
    const faults = layoutFaults(bad);
    expect(faults.map((fault) => fault.split(" ")[0])).toEqual([
      "subject",
      "subject",
      "generation",
      "lanes",
      "hash",
      "mapping",
    ]);
    expect(() => validateLayout(bad as unknown as LaneLayout)).toThrow(
      expect.objectContaining({
        code: "INVALID_LAYOUT",
        message: expect.stringContaining(faults.join("; ")),
      }),
    );
  });

  test.each([
    "",
    "a..b",
    ".a",
    "a.",
    "a b",
    "a\tb",
    "a\r\nPUB x 0",
    "a\0b",
    "a\u00a0b",
    "*",
    "a.*",
    "a.>",
    "$JS",
    "a.$1",
    "_INBOX.x",
    "a{b",
    'a"b',
    "a\\b",
    "\ud800",
    "x".repeat(129),
    42,
    null,
    undefined,
  ])("R03: refuses the subject %j", (subject) => {
    expect(() => validateLayout({ ...layout, subject: subject as string })).toThrow(
      expect.objectContaining({ code: "INVALID_LAYOUT" }),
    );
  });

  test.each([0, -1, 1.5, Number.NaN, "2", 1_000_000_001, undefined])(
    "refuses the generation %j",
    (generation) => {
      expect(layoutFaults({ ...layout, generation })).toEqual([expect.stringMatching(/^generation must be/)]);
    },
  );

  test.each(["stream", "account"] as const)(
    "refuses a hash that the server cannot compute with the mapping %s",
    (mapping) => {
      expect(layoutFaults({ ...layout, mapping })).toEqual([expect.stringMatching(/^hash must be "fnv1a"/)]);
    },
  );

  test("refuses an intake where nobody would publish to it", () => {
    expect(layoutFaults({ ...layout, intake: "in.orders.{key}.*" })).toEqual([
      expect.stringMatching(/^intake is for/),
    ]);
  });

  test.each([null, "", 42, {}])("refuses %j as an intake", (intake) => {
    expect(layoutFaults({ ...mapped, intake })).toEqual([
      expect.stringMatching(/^intake .*must be a subject pattern/),
    ]);
  });

  test("refuses a subject that the default intake lies under, unless another intake is named", () => {
    expect(layoutFaults({ ...mapped, subject: "in" })).toEqual([
      expect.stringMatching(/^intake "in.in.{key}.\*" \(the default; name one that fits\): it overlaps/),
    ]);
    expect(layoutFaults({ ...mapped, subject: "in", intake: "events.{key}.*" })).toEqual([]);
  });

  test.each([null, undefined, "orders", 1])("refuses %j as a layout", (given) => {
    expect(() => validateLayout(given as unknown as LaneLayout)).toThrow(
      expect.objectContaining({ code: "INVALID_LAYOUT" }),
    );
  });
});

describe("laneRoot", () => {
  test("is the subject in generation 1 and below the subject afterwards, so that one permission covers all", () => {
    expect(laneRoot(layout)).toBe("orders");
    expect(laneRoot({ ...layout, generation: 2 })).toBe("orders.g2");
    expect(laneRoot({ ...layout, subject: "shop.orders", generation: 13 })).toBe("shop.orders.g13");
  });
});

describe("layoutIntake", () => {
  test("is the default one where the layout names none", () => {
    expect(layoutIntake(mapped).pattern).toBe("in.orders.{key}.*");
  });

  test("is refused where publishers choose the lane", () => {
    expect(() => layoutIntake(layout)).toThrow(expect.objectContaining({ code: "INVALID_INTAKE" }));
  });
});
