import type { LanekeeperError } from "./lanekeeper-error.js";

/** A plain fact about what Lanekeeper did or found. Observers are called synchronously and cannot change anything. */
export interface Notification {
  readonly type: NotificationType;
  readonly at: Date;
  readonly group?: string;
  readonly lane?: number;
  readonly key?: string;
  readonly seq?: number;
  readonly error?: LanekeeperError;
}

/** docs/reference/notifications.md says when each is sent and what it carries. */
export type NotificationType =
  | "lane-claimed"
  | "lane-released"
  | "fenced"
  | "rewound"
  | "layout-changed"
  | "retry"
  | "parked"
  | "dropped"
  | "blocked"
  | "lost"
  | "misrouted"
  | "handler-stuck"
  | "loop-blocked"
  | "overlap-possible"
  | "observer-failed"
  | "unhealthy"
  | "healthy";
