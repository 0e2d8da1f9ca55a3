import { expect, test } from "vitest";
import { jsonCodec } from "./codec.js";
import { resolvePublisherOptions } from "./publisher-options.js";

const window = 120_000;

test("defaults, frozen", () => {
  const options = resolvePublisherOptions({}, window);
  expect(options).toEqual({
    codec: jsonCodec,
    timeoutMs: 30_000,
    maxPending: 65_536,
    maxPendingBytes: 64 * 1024 * 1024,
  });
  expect(Object.isFrozen(options)).toBe(true);
});

test("every fault in one error", () => {
  const bad = { codec: "json", timeoutMs: 1, maxPending: 1.5, maxPendingBytes: "1", retries: 3 };
  expect(() => resolvePublisherOptions(bad as never, window)).toThrow(
    /retries.*codec.*timeoutMs.*maxPending.*maxPendingBytes/s,
  );
  expect(() => resolvePublisherOptions(null as never, window)).toThrow(/must be an object/);
});

test("P1: timeoutMs stays below the duplicate window, the default too", () => {
  expect(() => resolvePublisherOptions({ timeoutMs: 120_000 }, window)).toThrow(/duplicate window/);
  expect(() => resolvePublisherOptions({}, 10_000)).toThrow(
    /timeoutMs \(30000\).*duplicate window \(10000 ms\)/,
  );
  expect(resolvePublisherOptions({ timeoutMs: 119_999 }, window).timeoutMs).toBe(119_999);
});
