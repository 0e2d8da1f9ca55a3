import { expect, test } from "vitest";
import { memoryStream } from "./group-consumers.test-support.js";
import { LaneScene } from "./lane-host.test-support.js";
import { StuckWatch } from "./stuck-watch.js";

test("a stuck event that was removed from the stream frees its lane; looks do not pile up while nobody answers", async () => {
  const asked: ((held: boolean) => void)[] = [];
  const holds = () => new Promise<boolean>((resolve) => asked.push(resolve));
  const lane = new LaneScene({
    ackWaitMs: 600_000,
    retry: { attempts: 1, initialDelayMs: 86_400_000, maxDelayMs: 86_400_000, jitter: 0 },
  });
  const watch = new StuckWatch({ ...memoryStream(), holds }, lane.clock.now());
  const look = async (afterMs: number) => {
    await lane.clock.advance(afterMs);
    watch.tick(lane.clock.now(), [lane.runner]);
  };
  lane.deliver(1);
  await lane.settle();
  await lane.fail("bad");
  expect(lane.types()).toEqual(["blocked"]);
  for (let looks = 0; looks < 3; looks++) await look(5_000);
  expect(asked).toHaveLength(1);
  asked[0]?.(true);
  await lane.settle();
  expect(lane.runner.stuck()).toHaveLength(1);
  await look(5_000);
  asked[1]?.(false);
  await lane.settle();
  expect(lane.types()).toEqual(["blocked", "lost"]);
  expect(lane.feed.sent).toEqual(["ack 1"]);
});

test("what cannot be told changes nothing, and is looked at again", async () => {
  const lane = new LaneScene({
    retry: { attempts: 1, initialDelayMs: 60_000, maxDelayMs: 60_000, jitter: 0 },
  });
  let asked = 0;
  const holds = async () => {
    asked++;
    throw new Error("no leader");
  };
  const watch = new StuckWatch({ ...memoryStream(), holds }, 0);
  lane.deliver(1);
  await lane.settle();
  await lane.fail("bad");
  for (const now of [4_999, 5_000, 9_999, 10_000]) {
    watch.tick(now, [lane.runner]);
    await lane.settle();
  }
  expect(asked).toBe(2);
  expect(lane.runner.stuck()).toHaveLength(1);
});
