import type { Notification } from "@lanekeeper/core";
import type { NotificationRecord } from "./history-record.js";

/** What the history keeps of a notification. */
export function notificationEntry(notification: Notification): NotificationRecord {
  const { type, group, lane, key, seq, error } = notification;
  return {
    kind: "notification",
    type,
    ...(group === undefined ? {} : { group }),
    ...(lane === undefined ? {} : { lane }),
    ...(key === undefined ? {} : { key }),
    ...(seq === undefined ? {} : { seq }),
    ...(error === undefined ? {} : { code: error.code, message: error.message }),
    ...(type === "loop-blocked" ? { lateMs: standstillOf(error?.message ?? "") } : {}),
  };
}

/** The notification says it in words only. */
function standstillOf(message: string): number {
  const ms = /stood still for (\d+) ms/.exec(message)?.[1];
  if (ms === undefined) throw new Error(`no duration in "${message}"`);
  return Number(ms);
}
