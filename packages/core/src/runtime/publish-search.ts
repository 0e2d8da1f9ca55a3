import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { EventSight } from "../domain/publish-sight.js";
import type { StreamPort } from "./stream-port.js";

/**
 * Looks whether an event is stored. With an expected last sequence it can only be the key's first event after that
 * sequence; without, what is asked is whether it is the key's newest. Never rejects.
 *
 * @param filter the subjects of all events of its key
 */
export async function searchEvent(
  stream: StreamPort,
  event: { id: string; expectLastSeq: number | undefined },
  filter: string,
): Promise<EventSight> {
  const { id, expectLastSeq } = event;
  try {
    const found =
      expectLastSeq === undefined
        ? await stream.lastMatching(filter)
        : await stream.nextMatching(filter, expectLastSeq + 1);
    if (found === undefined) return { type: "absent" };
    if (found.id === id) return { type: "stored", seq: found.seq };
    return { type: expectLastSeq === undefined ? "absent" : "superseded" };
  } catch (error) {
    const forbidden = LanekeeperError.is(error) && error.code === "PERMISSION_DENIED";
    return { type: "unreadable", forbidden };
  }
}
