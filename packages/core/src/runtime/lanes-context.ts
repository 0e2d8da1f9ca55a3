import type { LaneLayout } from "@lanekeeper/partitioner";
import type { Notification } from "../domain/notification.js";
import type { Clock } from "./clock.js";
import type { ConnectionPort } from "./connection-port.js";
import type { StreamPort, StreamSnapshot } from "./stream-port.js";
import type { StreamWatch } from "./stream-watch.js";

/** What everything that `openLanes` makes shares. */
export interface LanesContext {
  readonly stream: string;
  /** The layout found at open. Whatever the stream carries later that differs is a fault, told by `watch`. */
  readonly layout: LaneLayout;
  /** The stream as it was at open. */
  readonly opened: StreamSnapshot;
  readonly streamPort: StreamPort;
  readonly connection: ConnectionPort;
  readonly clock: Clock;
  /** Aborts, with CLOSED, when the lanes are closed: nothing waits any longer for what is only being started. */
  readonly closing: AbortSignal;
  readonly watch: StreamWatch;
  /** Tells the observer given to openLanes; never throws. */
  readonly notify: (notification: Omit<Notification, "at">) => void;
}
