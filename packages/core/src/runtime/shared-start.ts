import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { GroupConsumers, GroupWish } from "./group-consumers.js";
import type { OwnedGroupLanes } from "./owned-group-lanes.js";
import type { StreamSnapshot } from "./stream-port.js";

/**
 * Takes over a group whose lanes were owned: refused while an owner lives, otherwise shared consumers go on from where
 * the owned ones stopped. Interrupted, it is finished by the next shared worker: the group's record goes last.
 */
export async function continueOwnedGroup(
  owned: OwnedGroupLanes,
  consumers: GroupConsumers,
  wish: GroupWish,
  snapshot: StreamSnapshot,
): Promise<void> {
  const live = await owned.live();
  if (live.length > 0) {
    throw new LanekeeperError(
      "ASSIGNMENT_DIFFERS",
      `group ${wish.group} has live workers with assignment "owned" (${live.join(", ")}); ` +
        "close them first, then shared workers go on where they stopped",
    );
  }
  const views = await owned.read();
  await consumers.continueFrom(wish, views, snapshot);
  await owned.forget();
}
