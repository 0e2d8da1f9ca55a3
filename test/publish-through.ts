import type { PublishReceipt } from "@lanekeeper/core";
import { expect } from "vitest";
import { awaitCondition, within } from "./harness/await-condition.js";
import type { OpenedLanes } from "./publisher-setup.js";

/** Longer than anything that goes wrong lasts on a slow machine, so that no call may end by it. */
const CALL_MS = 100_000;
/** More than this is a mistake in the test. */
const MAX_EVENTS = 500_000;

export interface PublishThroughOptions {
  readonly maxPending: number;
  /** The key of the n-th event. */
  keyOf(n: number): string;
  /** What is waited for after the n-th event, so that not too much is published. */
  pace(n: number): Promise<unknown> | undefined;
  /** Whatever goes wrong meanwhile; `more` waits until that many more events are stored. */
  during(more: (count: number) => Promise<void>): Promise<void>;
}

/**
 * Publishes without awaiting as long as `during` runs; every call must resolve.
 *
 * @returns the events as `<key>/n<number>`, and their receipts, in the order of the calls
 */
export async function publishThrough(
  opened: OpenedLanes,
  { maxPending, keyOf, pace, during }: PublishThroughOptions,
): Promise<{ names: string[]; receipts: PublishReceipt[] }> {
  const publisher = opened.lanes.publisher({ maxPending, timeoutMs: CALL_MS });
  const names: string[] = [];
  const calls: Promise<PublishReceipt>[] = [];
  let running = true;
  let failed: unknown;
  let resolved = 0;
  const more = async (count: number): Promise<void> => {
    const goal = resolved + count;
    await awaitCondition(() => resolved >= goal || failed !== undefined, {
      timeoutMs: 60_000,
      what: () => `${goal} receipts (so far ${resolved})`,
    });
  };
  const loop = (async () => {
    for (let n = 0; running && n < MAX_EVENTS; n++) {
      await publisher.ready();
      const key = keyOf(n);
      names.push(`${key}/n${n}`);
      const call = publisher.publish({ key, type: `n${n}`, data: n });
      call.then(
        () => {
          resolved++;
        },
        (error: unknown) => {
          failed ??= error;
        },
      );
      calls.push(call);
      await pace(n);
    }
  })();
  try {
    await during(more);
  } finally {
    running = false;
    await loop;
  }
  const receipts = await within(Promise.all(calls), CALL_MS + 20_000, "every publish to resolve");
  expect(failed).toBeUndefined();
  await publisher.close();
  return { names, receipts };
}
