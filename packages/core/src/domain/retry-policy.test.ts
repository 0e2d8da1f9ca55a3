import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OptionFaults } from "./option-faults.js";
import { type RetryOptions, resolveRetry, retryDelayMs } from "./retry-policy.js";

function resolve(options?: RetryOptions) {
  const faults = new OptionFaults("test");
  const policy = resolveRetry(options, faults);
  faults.throwIfAny();
  return policy;
}

/** Milliseconds from the first failure to the last attempt. */
function span(roll: number): number {
  const policy = resolve();
  let total = 0;
  for (let failures = 1; failures < policy.attempts; failures++)
    total += retryDelayMs(policy, failures, roll);
  return total;
}

describe("the defaults", () => {
  test("a dependency that is down for 60 s exhausts nobody; one bad event exhausts itself within 3 minutes", () => {
    expect(span(0)).toBeGreaterThan(60_000);
    expect(span(1)).toBeLessThan(180_000);
    expect(Math.round(span(0) / 1_000)).toBe(141);
  });

  test("are 12 attempts, 200 ms, doubling, at most 30 s, a fifth of jitter, frozen", () => {
    const policy = resolve();
    expect(policy).toEqual({ attempts: 12, initialDelayMs: 200, factor: 2, maxDelayMs: 30_000, jitter: 0.2 });
    expect(Object.isFrozen(policy)).toBe(true);
  });
});

describe("delays", () => {
  test("R24: grow by the factor up to the longest", () => {
    const policy = resolve({ initialDelayMs: 500, factor: 2, maxDelayMs: 3_000, jitter: 0 });
    expect([1, 2, 3, 4, 5].map((n) => retryDelayMs(policy, n, 0.5))).toEqual([
      500, 1_000, 2_000, 3_000, 3_000,
    ]);
  });

  test("jitter only lengthens, by at most its share, and no delay is infinite", () => {
    const policies = fc.record({
      initialDelayMs: fc.integer({ min: 0, max: 10_000 }),
      factor: fc.double({ min: 1, max: 100, noNaN: true }),
      maxDelayMs: fc.integer({ min: 10_000, max: 86_400_000 }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(
        policies,
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (options, failures, roll) => {
          const policy = resolve(options);
          const plain = retryDelayMs(policy, failures, 0);
          const rolled = retryDelayMs(policy, failures, roll);
          expect(rolled).toBeGreaterThanOrEqual(plain);
          expect(rolled).toBeLessThanOrEqual(plain * (1 + options.jitter) + 1e-6);
          expect(plain).toBeLessThanOrEqual(options.maxDelayMs);
        },
      ),
    );
  });

  test("no delay at all stays none, however often it failed", () => {
    const policy = resolve({ initialDelayMs: 0, maxDelayMs: 0 });
    expect(retryDelayMs(policy, 1, 1)).toBe(0);
    expect(retryDelayMs(policy, 5_000, 1)).toBe(0);
  });
});

test("every fault is named at once, also between fields", () => {
  expect(() =>
    resolve({
      attempts: 0,
      initialDelayMs: -1,
      factor: 0.5,
      jitter: 2,
      maxDelayMs: 1,
      delay: 3,
    } as RetryOptions),
  ).toThrow(
    /delay is not an option.*attempts must be.*initialDelayMs must be.*factor must be.*jitter must be.*maxDelayMs 1 is less/s,
  );
  expect(() => resolve(7 as unknown as RetryOptions)).toThrow(/retry must be an object, not 7/);
});
