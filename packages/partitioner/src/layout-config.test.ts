import { describe, expect, test } from "vitest";
import { type LaneLayout, layoutConfig, layoutFromMetadata } from "./index.js";

const publisher: LaneLayout = {
  subject: "orders",
  generation: 1,
  lanes: 3,
  hash: "murmur3",
  mapping: "publisher",
};
const account: LaneLayout = { ...publisher, hash: "fnv1a", mapping: "account" };
const stream: LaneLayout = { ...account, mapping: "stream" };

describe("layoutConfig", () => {
  test("publisher: one subject per lane, so that the server refuses a lane that does not exist", () => {
    expect(layoutConfig(publisher)).toEqual({
      subjects: ["orders.0.*.>", "orders.1.*.>", "orders.2.*.>"],
      metadata: {
        "lanekeeper.version": "1",
        "lanekeeper.subject": "orders",
        "lanekeeper.generation": "1",
        "lanekeeper.lanes": "3",
        "lanekeeper.hash": "murmur3",
        "lanekeeper.mapping": "publisher",
      },
    });
  });

  test("stream: the intake is the only subject, and the transform puts events in their lanes", () => {
    const config = layoutConfig({ ...stream, generation: 2 });
    expect(config.subjects).toEqual(["in.orders.*.*"]);
    expect(config.transform).toEqual({
      src: "in.orders.*.*",
      dest: "orders.g2.{{partition(3,1)}}.{{wildcard(1)}}.{{wildcard(2)}}",
    });
    expect(config.metadata["lanekeeper.intake"]).toBe("in.orders.{key}.*");
  });

  test("account: the lanes are the subjects, and the transform is what the server's mappings must have", () => {
    const config = layoutConfig({ ...account, intake: "sensors.*.{key}.*.>" });
    expect(config.subjects).toEqual(["orders.0.*.>", "orders.1.*.>", "orders.2.*.>"]);
    expect(config.transform).toEqual({
      src: "sensors.*.*.*.>",
      dest: "orders.{{partition(3,2)}}.{{wildcard(2)}}.{{wildcard(1)}}.{{wildcard(3)}}.>",
    });
    expect(config.metadata["lanekeeper.intake"]).toBe("sensors.*.{key}.*.>");
  });

  test("the largest layout fits into one request of the server's default size", () => {
    const largest = { ...publisher, subject: "x".repeat(128), generation: 1_000_000_000, lanes: 4096 };
    expect(JSON.stringify(layoutConfig(largest)).length).toBeLessThan(1024 * 1024 * 0.75);
  });

  test("refuses a bad layout", () => {
    expect(() => layoutConfig({ ...publisher, lanes: 0 })).toThrow(
      expect.objectContaining({ code: "INVALID_LAYOUT" }),
    );
  });
});

describe("layoutFromMetadata", () => {
  test.each([publisher, { ...publisher, generation: 7, lanes: 4096, hash: "murmur2" as const }])(
    "reads back %j",
    (layout) => {
      expect(layoutFromMetadata(layoutConfig(layout).metadata)).toEqual(layout);
    },
  );

  test("spells out an intake that was the default", () => {
    expect(layoutFromMetadata(layoutConfig(stream).metadata)).toEqual({
      ...stream,
      intake: "in.orders.{key}.*",
    });
    const named = { ...account, intake: "sensors.*.{key}.*" };
    expect(layoutFromMetadata(layoutConfig(named).metadata)).toEqual(named);
  });

  test("passes over what is not ours, and what a later minor version may add", () => {
    expect(layoutFromMetadata(undefined)).toBeUndefined();
    expect(layoutFromMetadata({})).toBeUndefined();
    expect(layoutFromMetadata({ "_nats.ver": "2.15.1", owner: "shop" })).toBeUndefined();
    const metadata = { ...layoutConfig(publisher).metadata, owner: "shop", "lanekeeper.note": "x" };
    expect(layoutFromMetadata(metadata)).toEqual(publisher);
  });

  test.each([
    ["lanekeeper.version", undefined, /lanekeeper.version is missing/],
    ["lanekeeper.version", "2", /lanekeeper.version is "2" and this package reads 1; upgrade it/],
    ["lanekeeper.version", "one", /"one" is not a version/],
    ["lanekeeper.subject", undefined, /lanekeeper.subject is missing/],
    ["lanekeeper.subject", "a b", /whitespace/],
    ["lanekeeper.generation", undefined, /lanekeeper.generation is missing/],
    ["lanekeeper.generation", "0", /generation must be/],
    ["lanekeeper.lanes", undefined, /lanekeeper.lanes is missing/],
    ["lanekeeper.lanes", "012", /lanes must be/],
    ["lanekeeper.lanes", "1e2", /lanes must be/],
    ["lanekeeper.lanes", "5000", /lanes must be/],
    ["lanekeeper.hash", undefined, /lanekeeper.hash is missing/],
    ["lanekeeper.hash", "md5", /hash must be/],
    ["lanekeeper.hash", "murmur3", /hash must be "fnv1a"/],
    ["lanekeeper.mapping", undefined, /lanekeeper.mapping is missing/],
    ["lanekeeper.mapping", "publisher", /intake is for/],
    ["lanekeeper.intake", undefined, /lanekeeper.intake is missing/],
    ["lanekeeper.intake", "orders.{key}.*", /overlaps/],
  ])("refuses damaged metadata, naming the fault: %s = %j", (name, value, message) => {
    const { [name]: _, ...rest } = layoutConfig(account).metadata;
    const attempt = () => layoutFromMetadata(value === undefined ? rest : { ...rest, [name]: value });
    expect(attempt).toThrow(expect.objectContaining({ code: "INVALID_LAYOUT" }));
    expect(attempt).toThrow(message);
  });

  test("names every fault at once", () => {
    expect(() => layoutFromMetadata({ "lanekeeper.version": "1" })).toThrow(
      /subject is missing.*generation is missing.*lanes is missing.*hash is missing.*mapping is missing/,
    );
  });
});
