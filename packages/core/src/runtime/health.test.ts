import { expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { Health } from "./health.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

function scene() {
  const clock = new VirtualClock();
  const told: string[] = [];
  const health = new Health(clock, ({ type, error }) => told.push(`${type} ${error?.message ?? ""}`.trim()));
  const fault = (cause: string, graceMs?: number) =>
    health.fault(cause, new LanekeeperError("API_ERROR", cause), graceMs);
  return { clock, told, health, fault };
}

test("a fault without grace is told at once; it is healthy again when the last fault is cleared", () => {
  const { told, health, fault } = scene();
  fault("a");
  fault("b");
  expect(health.error?.message).toBe("a");
  health.clear("a");
  expect(health.error?.message).toBe("b");
  health.clear("b");
  expect(health.error).toBeUndefined();
  expect(told).toEqual(["unhealthy a", "healthy"]);
});

test("what passes within its grace is never told", async () => {
  const { clock, told, health, fault } = scene();
  fault("a", 3_000);
  await clock.advance(2_999);
  health.clear("a");
  await clock.advance(10_000);
  expect(told).toEqual([]);
});

test("R40: what outlasts its grace is told, and the same cause again does not start the grace anew", async () => {
  const { clock, told, health, fault } = scene();
  fault("a", 3_000);
  await clock.advance(2_000);
  fault("a", 3_000);
  expect(health.error).toBeUndefined();
  await clock.advance(1_000);
  expect(told).toEqual(["unhealthy a"]);
  expect(health.error?.message).toBe("a");
});

test("clearing what was never at fault tells nothing; stopped, no timer is left", () => {
  const { clock, told, health, fault } = scene();
  health.clear("a");
  fault("b", 3_000);
  health.stop();
  expect(clock.timers).toBe(0);
  expect(told).toEqual([]);
});
