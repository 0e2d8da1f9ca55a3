import { type LaneLayout, layoutConfig } from "@lanekeeper/partitioner";
import { describe, expect, test } from "vitest";
import { type LayoutCarrier, layoutFault } from "./layout-state.js";

const layout: LaneLayout = {
  subject: "orders",
  generation: 2,
  lanes: 4,
  hash: "fnv1a",
  mapping: "stream",
  intake: "in.orders.{key}.*",
};

function carrier(of: LaneLayout = layout, more: Partial<LayoutCarrier> = {}): LayoutCarrier {
  const { subjects, transform, metadata } = layoutConfig(of);
  return { subjects, transform: of.mapping === "stream" ? transform : undefined, metadata, ...more };
}

describe("O8: a stream is compared with the layout this process works by", () => {
  test("the same layout is no fault, also with other subjects and metadata beside it", () => {
    expect(layoutFault(layout, carrier())).toBeUndefined();
    const { subjects, metadata } = carrier();
    const more = { subjects: [...subjects, "audit.>"], metadata: { ...metadata, team: "billing" } };
    expect(layoutFault(layout, carrier(layout, more))).toBeUndefined();
  });

  test("a generation ahead: LAYOUT_CHANGED", () => {
    expect(layoutFault(layout, carrier({ ...layout, generation: 3 }))).toMatchObject({
      code: "LAYOUT_CHANGED",
      message: expect.stringContaining("generation 3"),
    });
  });

  const { metadata } = carrier();
  const differing: [what: string, carrier: LayoutCarrier, says: RegExp][] = [
    [
      "a generation behind (an old file was applied again)",
      carrier({ ...layout, generation: 1 }),
      /went back/,
    ],
    ["metadata gone", carrier(layout, { metadata: {} }), /metadata is gone/],
    [
      "metadata damaged",
      carrier(layout, {
        metadata: Object.fromEntries(
          Object.entries(metadata).map(([name, value]) => [name, name.endsWith("lanes") ? "many" : value]),
        ),
      }),
      /damaged/,
    ],
    ["lanes changed in place", carrier({ ...layout, lanes: 8 }), /lanes 4 → 8/],
    ["mapping changed in place", carrier({ ...layout, mapping: "account" }), /mapping stream → account/],
    ["a lane's subjects missing", carrier(layout, { subjects: carrier().subjects.slice(1) }), /lacks 1 of/],
    ["the transform gone", carrier(layout, { transform: undefined }), /transform is none/],
    [
      "another transform",
      carrier(layout, { transform: { src: "in.>", dest: "orders.0.>" } }),
      /transform is in\.> → orders\.0\.>/,
    ],
  ];

  test.each(differing)("%s: LAYOUT_DIFFERS, with what to restore", (_, found, says) => {
    const fault = layoutFault(layout, found);
    expect(fault).toMatchObject({ code: "LAYOUT_DIFFERS" });
    expect(fault?.message).toMatch(says);
  });

  test("a transform that the layout does not have moves events between lanes: LAYOUT_DIFFERS", () => {
    const plain: LaneLayout = {
      subject: "orders",
      generation: 1,
      lanes: 2,
      hash: "murmur3",
      mapping: "publisher",
    };
    const found = carrier(plain, { transform: { src: ">", dest: "orders.0.x" } });
    expect(layoutFault(plain, found)?.code).toBe("LAYOUT_DIFFERS");
  });
});
