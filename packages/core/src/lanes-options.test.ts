import { describe, expect, test } from "vitest";
import { type LanesOptions, resolveLanesOptions } from "./lanes-options.js";

const resolve = (options: unknown) => resolveLanesOptions(options as LanesOptions);

describe("openLanes() options", () => {
  test("without create nothing is to be made; the result is frozen", () => {
    const resolved = resolve({ stream: "ORDERS" });
    expect(resolved).toEqual({
      stream: "ORDERS",
      create: undefined,
      jetstream: {},
      bucket: "lanekeeper_ORDERS",
      onNotification: undefined,
    });
    expect(Object.isFrozen(resolved)).toBe(true);
  });

  test("create: 64 lanes, murmur3, chosen by the publisher", () => {
    expect(resolve({ stream: "ORDERS", create: { subject: "orders" } }).create).toEqual({
      layout: { subject: "orders", generation: 1, lanes: 64, hash: "murmur3", mapping: "publisher" },
      streamConfig: {},
    });
  });

  test.each(["a b", "", "x".repeat(129), 3, null])("bucket %j is refused, a fit name is taken", (bucket) => {
    expect(() => resolve({ stream: "ORDERS", bucket })).toThrow(/bucket must be 1 to 128 characters/);
    expect(resolve({ stream: "ORDERS", bucket: "my_claims-2" }).bucket).toBe("my_claims-2");
  });

  test.each(["stream", "account"])("mapping %s: the server's own hash is the default", (mapping) => {
    const { create } = resolve({ stream: "ORDERS", create: { subject: "orders", mapping } });
    expect(create?.layout).toMatchObject({ mapping, hash: "fnv1a" });
  });

  test("all faults are named at once, in one typed error", () => {
    expect(() =>
      resolve({
        stream: "a b",
        bucket: "a.b",
        jetstream: { domain: "x", apiPrefix: "y" },
        onNotification: 1,
        creates: {},
        create: {
          subject: "orders.*",
          lanes: 0,
          streamConfig: {
            name: "OTHER",
            subjects: ["x"],
            max_msgs_per_subject: 1,
            metadata: { "lanekeeper.lanes": "3" },
          },
          lane: 3,
        },
      }),
    ).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTIONS",
        message: expect.stringMatching(
          /creates is not.*stream.*bucket must be.*onNotification.*exclude each other.*lane is not an option.*create\.subject.*create\.lanes.*streamConfig\.name.*streamConfig\.subjects.*lanekeeper\.lanes.*max_msgs_per_subject/s,
        ),
      }),
    );
  });

  test.each([undefined, null, 1, "ORDERS"])("%s instead of options is a typed error", (options) => {
    expect(() => resolve(options)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  });

  test("create must be an object", () => {
    expect(() => resolve({ stream: "S", create: "orders" })).toThrow(/create must be an object/);
  });
});
