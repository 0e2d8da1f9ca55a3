import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { ReadyGroup } from "./group-consumers.js";
import type { Notify } from "./notifier.js";
import type { StreamSnapshot } from "./stream-port.js";

/**
 * Tells when a worker starts that the stream has deleted events before its group had settled them (O4). What is certain
 * is told, and nothing else: events stored since the group's start, less those its consumers delivered or still have to
 * deliver. Redeliveries can hide a loss from this count; {@link LossWatch} sees those that happen while workers run.
 */
export function reportLoss(group: ReadyGroup, snapshot: StreamSnapshot, notify: Notify): void {
  if (snapshot.retention !== "limits" || snapshot.firstSeq <= group.startSeq) return;
  const stored = snapshot.lastSeq - group.startSeq + 1;
  const accounted = group.lanes.reduce((sum, lane) => sum + lane.deliveries + lane.pending, 0);
  const lost = stored - accounted;
  if (lost <= 0) return;
  const text = `the stream deleted ${lost} event(s) between ${group.startSeq} and ${snapshot.firstSeq - 1} before this group had them`;
  notify({ type: "lost", seq: snapshot.firstSeq - 1, error: new LanekeeperError("EVENT_LOST", text) });
}

/** The same for a group that is seen for the first time: what it was to start with is gone already (O4). */
export function reportSkipped(startSeq: number, snapshot: StreamSnapshot, notify: Notify): void {
  if (snapshot.retention !== "limits" || snapshot.firstSeq <= startSeq) return;
  const text = `the stream deleted its events from ${startSeq} to ${snapshot.firstSeq - 1} before this group had them`;
  notify({ type: "lost", seq: snapshot.firstSeq - 1, error: new LanekeeperError("EVENT_LOST", text) });
}
