import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Notification } from "../domain/notification.js";
import type { Clock } from "./clock.js";

export type Observer = (notification: Notification) => void;
export type Notify = (notification: Omit<Notification, "at">) => void;

/**
 * Tells one observer, which cannot break anything: its first throw is reported once, to itself, as `observer-failed`;
 * this and all later throws are swallowed.
 */
export function notifier(observer: Observer | undefined, clock: Clock): Notify {
  if (observer === undefined) return () => {};
  let reported = false;
  return (notification) => {
    const fact = Object.freeze({ ...notification, at: new Date(clock.wall()) });
    try {
      observer(fact);
    } catch (cause) {
      if (reported) return;
      reported = true;
      const message = "onNotification threw; its throws are swallowed from now on";
      const error = new LanekeeperError("OBSERVER_FAILED", message, { cause });
      try {
        observer(Object.freeze({ type: "observer-failed" as const, at: new Date(clock.wall()), error }));
      } catch {
        // Reported once, as promised.
      }
    }
  };
}
