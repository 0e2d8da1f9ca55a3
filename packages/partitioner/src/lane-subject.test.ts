import { describe, expect, test } from "vitest";
import { type LaneLayout, LaneRouter, laneFilter, laneSubject, parseLaneSubject } from "./index.js";

const layout: LaneLayout = {
  subject: "orders",
  generation: 1,
  lanes: 12,
  hash: "fnv1a",
  mapping: "publisher",
};
const second: LaneLayout = { ...layout, generation: 2 };

describe("laneSubject", () => {
  test("is root, lane, key token and type", () => {
    expect(laneSubject(layout, { key: "customer-42", type: "created" })).toBe(
      "orders.10.customer-42.created",
    );
    expect(laneSubject(second, { key: "a.b", type: "address.changed" })).toMatch(
      /^orders\.g2\.\d+\.a%2Eb\.address\.changed$/,
    );
  });

  test("refuses a bad layout, key or type with its own code", () => {
    const event = { key: "k", type: "t" };
    expect(() => laneSubject({ ...layout, lanes: 0 }, event)).toThrow(
      expect.objectContaining({ code: "INVALID_LAYOUT" }),
    );
    expect(() => laneSubject(layout, { ...event, key: "" })).toThrow(
      expect.objectContaining({ code: "INVALID_KEY" }),
    );
    expect(() => laneSubject(layout, { ...event, type: "" })).toThrow(
      expect.objectContaining({ code: "INVALID_TYPE" }),
    );
  });
});

describe("laneFilter", () => {
  test("matches one lane", () => {
    expect(laneFilter(layout, 0)).toBe("orders.0.>");
    expect(laneFilter(second, 11)).toBe("orders.g2.11.>");
    expect(laneFilter({ ...layout, lanes: 4096 }, 4095)).toBe("orders.4095.>");
  });

  test.each([-1, 12, 1.5, Number.NaN, "1"])("refuses the lane %j", (lane) => {
    expect(() => laneFilter(layout, lane as number)).toThrow(
      expect.objectContaining({ code: "INVALID_LANES" }),
    );
  });
});

const readers: [string, (layout: LaneLayout, subject: string) => unknown][] = [
  ["parseLaneSubject", parseLaneSubject],
  ["LaneRouter.parse", (given, subject) => new LaneRouter(given).parse(subject)],
];

describe.each(readers)("%s", (_name, parse) => {
  test("reads what laneSubject writes", () => {
    expect(parse(layout, "orders.10.customer-42.created")).toEqual({
      lane: 10,
      key: "customer-42",
      type: "created",
    });
    const event = { key: "x\r\n. 日本", type: "a b.c" };
    expect(parse(second, laneSubject(second, event))).toMatchObject(event);
  });

  test.each([
    ["another root", "order.10.customer-42.created", /its root is not "orders"/],
    ["a root that only begins alike", "orders2.10.customer-42.created", /its root is not "orders"/],
    ["the root alone", "orders", /its root is not "orders"/],
    ["no type", "orders.10.customer-42", /a lane, a key and a type must follow/],
    ["an empty type", "orders.10.customer-42.", /its type is not canonical/],
    ["an empty type token", "orders.10.customer-42.a..b", /its type is not canonical/],
    ["a type in another spelling", "orders.10.customer-42.%41", /its type is not canonical/],
    ["a key in another spelling", "orders.10.%63ustomer-42.created", /its key is not canonical/],
    ["an empty key", "orders.10..created", /its key is not canonical/],
    ["a lane that does not exist", "orders.12.customer-42.created", /its lane "12" is not one of 0 to 11/],
    ["a lane in another spelling", "orders.010.customer-42.created", /its lane "010" is not one of 0 to 11/],
    ["a lane that is no number", "orders.g2.10.customer-42.created", /its lane "g2" is not one of/],
    ["an empty lane", "orders..customer-42.created", /its lane "" is not one of/],
    [
      "another key's lane",
      "orders.9.customer-42.created",
      /its lane is 9, and the key's is 10 of 12 by fnv1a/,
    ],
  ])("refuses a foreign publisher's subject and says which part it is: %s", (_part, subject, message) => {
    expect(() => parse(layout, subject)).toThrow(expect.objectContaining({ code: "FOREIGN_SUBJECT" }));
    expect(() => parse(layout, subject)).toThrow(message);
  });

  test("refuses another generation's subject", () => {
    expect(() => parse(second, "orders.10.customer-42.created")).toThrow(
      expect.objectContaining({ code: "FOREIGN_SUBJECT" }),
    );
  });

  test("refuses what is no string", () => {
    expect(() => parse(layout, undefined as unknown as string)).toThrow(
      expect.objectContaining({ code: "FOREIGN_SUBJECT" }),
    );
  });
});

describe("LaneRouter", () => {
  test("routes a key like laneSubject does, and keeps the answer", () => {
    const router = new LaneRouter(layout);
    const route = router.route("customer-42");
    expect(route).toEqual({
      key: "customer-42",
      token: "customer-42",
      lane: 10,
      subjectPrefix: "orders.10.customer-42.",
    });
    expect(router.route("customer-42")).toBe(route);
    expect(router.subject({ key: "customer-42", type: "created" })).toBe("orders.10.customer-42.created");
  });

  test("R03: an event without a type is refused, also when its key is new", () => {
    const router = new LaneRouter(layout);
    // @ts-expect-error: callers without types can pass anything
    expect(() => router.subject({ key: "fresh", type: undefined })).toThrow(
      expect.objectContaining({ code: "INVALID_TYPE" }),
    );
  });

  test("answers the same however many keys and types pass through its bounded caches", () => {
    const router = new LaneRouter(layout, 4);
    for (let i = 0; i < 5_000; i++) {
      const event = { key: `k${i % 37}`, type: `t${i % 3_000}` };
      const subject = laneSubject(layout, event);
      expect(router.subject(event)).toBe(subject);
      expect(router.parse(subject)).toEqual(parseLaneSubject(layout, subject));
    }
  });

  test("publishes to the lane, or to the intake where the server chooses the lane", () => {
    const event = { key: "customer-42", type: "created" };
    expect(new LaneRouter(layout).publishSubject(event)).toBe("orders.10.customer-42.created");
    const mapped = new LaneRouter({ ...layout, mapping: "stream" });
    expect(mapped.publishSubject(event)).toBe("in.orders.customer-42.created");
    expect(mapped.subject(event)).toBe("orders.10.customer-42.created");
    expect(() => mapped.publishSubject({ ...event, type: "a.b" })).toThrow(
      expect.objectContaining({ code: "INVALID_TYPE" }),
    );
  });

  test("is not changed by what happens to the layout it was given", () => {
    const mine = { ...layout };
    const router = new LaneRouter(mine);
    mine.lanes = 1;
    expect(router.route("customer-42").lane).toBe(10);
    expect(Object.isFrozen(router.layout)).toBe(true);
  });

  test("refuses a bad layout, key, type or bound, and refuses again", () => {
    expect(() => new LaneRouter({ ...layout, lanes: 0 })).toThrow(
      expect.objectContaining({ code: "INVALID_LAYOUT" }),
    );
    for (const maxKeys of [1, 1_000_001, 2.5, Number.NaN]) {
      expect(() => new LaneRouter(layout, maxKeys)).toThrow(/maxKeys must be/);
    }
    const router = new LaneRouter(layout);
    for (let i = 0; i < 2; i++) {
      expect(() => router.route("")).toThrow(expect.objectContaining({ code: "INVALID_KEY" }));
      expect(() => router.route(42 as unknown as string)).toThrow(
        expect.objectContaining({ code: "INVALID_KEY" }),
      );
      expect(() => router.subject({ key: "k", type: "a..b" })).toThrow(
        expect.objectContaining({ code: "INVALID_TYPE" }),
      );
    }
  });
});
