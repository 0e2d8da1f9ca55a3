import { expect, test } from "vitest";
import type { LaneConsumerPort, ListedConsumer } from "./lane-consumer-port.js";
import { refuseSharedWorkers } from "./owned-start.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

/** A port that lists one shared consumer with these open pulls, look by look; undefined: none. */
function listing(...waiting: (number | undefined)[]) {
  let looks = 0;
  const list = async (): Promise<ListedConsumer[]> => {
    const open = waiting[looks++];
    if (open === undefined) return [];
    return [{ name: "c", group: "g", lane: 0, assignment: "shared", incarnation: undefined, waiting: open }];
  };
  return { port: { list } as unknown as LaneConsumerPort, looks: () => looks };
}

test.each([
  ["open pulls", [1]],
  ["pulls that were just on their way", [0, 1]],
])("O2: shared workers with %s are refused", async (_, waiting) => {
  const clock = new VirtualClock();
  const told = expect(refuseSharedWorkers(listing(...waiting).port, "g", clock)).rejects.toMatchObject({
    code: "ASSIGNMENT_DIFFERS",
  });
  await clock.advance(5_000);
  await told;
});

test("consumers that nobody pulls are looked at twice; without any nobody waits", async () => {
  const clock = new VirtualClock();
  const idle = listing(0, 0);
  const twice = refuseSharedWorkers(idle.port, "g", clock);
  await clock.advance(5_000);
  await twice;
  expect(idle.looks()).toBe(2);
  const none = listing(undefined);
  await refuseSharedWorkers(none.port, "g", clock);
  expect(none.looks()).toBe(1);
});
