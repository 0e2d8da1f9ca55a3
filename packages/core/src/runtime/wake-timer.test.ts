import { expect, test } from "vitest";
import { VirtualClock } from "./virtual-clock.test-support.js";
import { WakeTimer } from "./wake-timer.js";

/** As Node's timers: a delay counts in whole milliseconds, at least one, so that most fire early. */
class HastyClock extends VirtualClock {
  override after(ms: number, run: () => void) {
    return super.after(Math.max(Math.floor(ms), 1), run);
  }
}

test("nobody is woken before the time that was wished for, though timers fire early", async () => {
  const clock = new HastyClock();
  const woken: number[] = [];
  const timer = new WakeTimer(clock, (now) => woken.push(now));
  const at = clock.now() + 100;
  await clock.advance(0.5);
  timer.set(at);
  await clock.advance(98);
  expect(woken).toEqual([]);
  await clock.advance(10);
  expect(woken).toHaveLength(1);
  expect(woken[0]).toBeGreaterThanOrEqual(at);
});

test("the earliest wish counts; one that is stopped wakes nobody", async () => {
  const clock = new VirtualClock();
  const woken: number[] = [];
  const timer = new WakeTimer(clock, (now) => woken.push(now));
  const start = clock.now();
  timer.set(start + 200);
  timer.set(start + 50);
  timer.set(start + 100);
  await clock.advance(300);
  expect(woken).toEqual([start + 50]);
  timer.set(start + 400);
  timer.stop();
  await clock.advance(1_000);
  expect(woken).toHaveLength(1);
});
