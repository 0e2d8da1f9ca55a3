import type { HistoryRecord, StoredEvent } from "../history-record.js";
import { checkComplete } from "./check-complete.js";
import { checkNoGap } from "./check-no-gap.js";
import { checkOneAtATime, type OneAtATimeOptions, type StatedOverlap } from "./check-one-at-a-time.js";
import { checkOrder } from "./check-order.js";
import { checkPublishOrder } from "./check-publish-order.js";
import type { Fault } from "./fault.js";

export interface CheckAllOptions extends OneAtATimeOptions {
  /** Every group that was to handle the stream. */
  groups: readonly string[];
}

export interface CheckAllResult {
  /** Of every invariant. */
  readonly faults: readonly Fault[];
  /** See `checkOneAtATime`. */
  readonly frozenOverlaps: readonly StatedOverlap[];
  /** See `checkOneAtATime`. */
  readonly crashOverlaps: readonly StatedOverlap[];
  /** See `checkOneAtATime`. */
  readonly deletedOverlaps: readonly StatedOverlap[];
  /** See `checkComplete`. */
  readonly repeats: number;
}

/** O1, O2, O3, O4 and P1 over one history and what its stream holds. */
export function checkAll(
  history: readonly HistoryRecord[],
  stored: readonly StoredEvent[],
  options: CheckAllOptions,
): CheckAllResult {
  const { faults: overlaps, ...stated } = checkOneAtATime(history, options);
  const { faults: missing, repeats } = checkComplete(history, stored, options.groups);
  const faults = [
    ...checkOrder(history),
    ...overlaps,
    ...checkNoGap(history, stored),
    ...missing,
    ...checkPublishOrder(history, stored),
  ];
  return { faults, ...stated, repeats };
}
