import { expect, test } from "vitest";
import type { Notification } from "../domain/notification.js";
import { notifier } from "./notifier.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

test("an observer gets frozen facts with their time", () => {
  const clock = new VirtualClock();
  const heard: Notification[] = [];
  notifier((notification) => heard.push(notification), clock)({ type: "retry", seq: 3 });
  expect(heard).toEqual([{ type: "retry", seq: 3, at: new Date(clock.wall()) }]);
  expect(Object.isFrozen(heard[0])).toBe(true);
});

test("an observer's first throw is reported once, to itself; it breaks nothing and goes on hearing", () => {
  const heard: string[] = [];
  const tell = notifier(({ type, error }) => {
    heard.push(`${type} ${error?.code ?? ""}`.trim());
    throw new Error("broken");
  }, new VirtualClock());
  for (const type of ["retry", "fenced", "lost"] as const) tell({ type });
  expect(heard).toEqual(["retry", "observer-failed OBSERVER_FAILED", "fenced", "lost"]);
});

test("without an observer nothing happens", () => {
  expect(notifier(undefined, new VirtualClock())({ type: "retry" })).toBeUndefined();
});
