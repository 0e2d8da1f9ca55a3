import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, test } from "vitest";
import { bytesCodec, jsonCodec } from "./codec.js";
import { resolveWorkerOptions, type WorkerOptions } from "./worker-options.js";

type Options = WorkerOptions<Record<string, unknown>>;
const resolve = (options: unknown) => resolveWorkerOptions(options as Options, "host-1-abc");

const schema = {
  "~standard": { version: 1, vendor: "t", validate: () => ({ value: 1 }) },
} as StandardSchemaV1;

describe("defaults", () => {
  test("a group is all that is needed; the result is frozen", () => {
    const resolved = resolve({ group: "billing" });
    expect(resolved).toMatchObject({
      group: "billing",
      assignment: "owned",
      name: "host-1-abc",
      deliverPolicy: "all",
      maxAckPending: 1,
      leaseMs: undefined,
      concurrency: 256,
      ackWaitMs: 30_000,
      handlerTimeoutMs: undefined,
      onExhausted: "block",
      signal: undefined,
    });
    expect(resolved.codec).toBe(jsonCodec);
    expect(resolved.schemaFor("any")).toBeUndefined();
    expect(Object.isFrozen(resolved)).toBe(true);
    expect(Object.isFrozen(resolved.retry)).toBe(true);
  });

  test("what is given is taken", () => {
    const startTime = new Date(0);
    const { signal } = new AbortController();
    const given = { group: "g", name: "w", concurrency: 1, ackWaitMs: 1_000, handlerTimeoutMs: 10 };
    expect(
      resolve({ ...given, codec: bytesCodec, onExhausted: "drop", deliverPolicy: { startTime }, signal }),
    ).toMatchObject({
      ...given,
      codec: bytesCodec,
      onExhausted: "drop",
      deliverPolicy: { startTime },
      signal,
    });
    expect(resolve({ group: "g", deliverPolicy: "new" }).deliverPolicy).toBe("new");
    expect(resolve({ group: "g", deliverPolicy: { startSeq: 4 } }).deliverPolicy).toEqual({ startSeq: 4 });
    expect(resolve({ group: "g", assignment: "shared", maxAckPending: 1 }).assignment).toBe("shared");
    expect(resolve({ group: "g", maxAckPending: 10_000, leaseMs: 1_000 })).toMatchObject({
      maxAckPending: 10_000,
      leaseMs: 1_000,
    });
  });
});

describe("schemas", () => {
  test("one for every type, or one per type; types that are not named are not checked", () => {
    expect(resolve({ group: "g", schema }).schemaFor("x")).toBe(schema);
    const byType = resolve({ group: "g", schema: { placed: schema, paid: undefined } });
    expect(byType.schemaFor("placed")).toBe(schema);
    expect(byType.schemaFor("paid")).toBeUndefined();
    expect(byType.schemaFor("toString")).toBeUndefined();
  });

  test("a schema may be a function, as some libraries make them", () => {
    const callable = Object.assign(() => {}, schema);
    expect(resolve({ group: "g", schema: callable }).schemaFor("x")).toBe(callable);
  });
});

describe("faults", () => {
  test("all are named at once, in one typed error", () => {
    expect(() =>
      resolve({
        group: "a b",
        assignment: "leased",
        name: "with space",
        deliverPolicy: { startSeq: 0 },
        maxAckPending: 10_001,
        concurrency: 0,
        ackWaitMs: 1,
        leaseMs: 999,
        handlerTimeoutMs: 1,
        retry: { attempts: 0 },
        onExhausted: "park",
        codec: {},
        schema: { placed: 3 },
        signal: {},
        onNotification: 1,
        concurency: 5,
      }),
    ).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTIONS",
        message: expect.stringMatching(
          /concurency.*group must.*assignment.*maxAckPending.*onNotification.*name.*deliverPolicy.*concurrency.*ackWaitMs.*leaseMs.*handlerTimeoutMs.*attempts.*onExhausted.*codec.*schema.*signal/s,
        ),
      }),
    );
  });

  test("O1: shared lanes hold one event at a time, and have no lease", () => {
    expect(() => resolve({ group: "g", assignment: "shared", maxAckPending: 2, leaseMs: 5_000 })).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTIONS",
        message: expect.stringMatching(/maxAckPending must be 1 with.*leaseMs is for assignment "owned"/s),
      }),
    );
  });

  test.each([undefined, null, 7, "text"])("%s instead of options is a typed error", (options) => {
    expect(() => resolve(options)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  });

  test.each([
    { startSeq: 1, startTime: new Date() },
    { startTime: new Date(Number.NaN) },
    { startSeq: 1.5 },
    {},
    null,
    "last",
  ])("deliverPolicy %j is refused", (deliverPolicy) => {
    expect(() => resolve({ group: "g", deliverPolicy })).toThrow(/deliverPolicy must be/);
  });
});
