import type { GroupRecord } from "../domain/group-record.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { GroupStart } from "../domain/worker-options.js";
import { type Clock, pause } from "./clock.js";
import type { GroupConsumers } from "./group-consumers.js";
import type { LaneConsumerPort } from "./lane-consumer-port.js";
import type { StreamSnapshot } from "./stream-port.js";

/** Longer than a worker waits before it makes a pull request again that met trouble. */
const pullsAgainMs = 2_500;

/** Owners and shared workers of one group would handle the same events side by side (O2). */
export async function refuseSharedWorkers(
  consumers: LaneConsumerPort,
  group: string,
  clock: Clock,
): Promise<void> {
  const look = async () =>
    (await consumers.list()).filter((one) => one.group === group && one.assignment === "shared");
  let shared = await look();
  if (shared.length > 0 && shared.every(({ waiting }) => waiting === 0)) {
    // All their pulls may just be on the way, as after a change of leader.
    await pause(clock, pullsAgainMs);
    shared = await look();
  }
  if (shared.every(({ waiting }) => waiting === 0)) return;
  throw new LanekeeperError(
    "ASSIGNMENT_DIFFERS",
    `group ${group} has live workers with assignment "shared"; close them first, then owned workers go on where they stopped`,
  );
}

/**
 * What the record of a group that is seen for the first time says. One that has consumers of shared workers goes on from
 * those: from their start, under another incarnation, because shared fence tokens are larger than epochs.
 */
export async function groupWish(
  port: LaneConsumerPort,
  consumers: GroupConsumers,
  wish: { readonly group: string; readonly start: GroupStart },
  snapshot: StreamSnapshot,
  newId: () => string,
): Promise<Omit<GroupRecord, "version">> {
  const incarnation = `${snapshot.created}/${newId()}`;
  const known = (await port.list()).find((one) => one.group === wish.group && one.incarnation !== undefined);
  const usable = known?.incarnation?.startsWith(`${snapshot.created}/`) ? known : undefined;
  if (usable?.lane !== undefined && usable.incarnation !== undefined) {
    const state = await consumers.readAny(usable.name, usable.lane);
    if (state !== undefined) {
      return {
        created: snapshot.created,
        incarnation,
        startSeq: state.groupStartSeq,
        from: usable.incarnation,
      };
    }
  }
  const startSeq = await consumers.resolveStart(wish.start, snapshot);
  return { created: snapshot.created, incarnation, startSeq };
}
