import type { LanekeeperError } from "./lanekeeper-error.js";

/** Why a publisher may have to keep still. */
export class PublishGate {
  connected: boolean;
  /** Events are taken but not sent. */
  held = false;
  /** Nothing is taken or sent. */
  fault: LanekeeperError | undefined = undefined;
  /** Nothing is taken. */
  refusing: LanekeeperError | undefined = undefined;
  closed = false;

  constructor(connected: boolean) {
    this.connected = connected;
  }

  /** Whether anything may be sent. */
  get open(): boolean {
    return this.connected && !this.held && this.fault === undefined && !this.closed;
  }
}
