import { expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { patiently, persistently } from "./patience.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

const unanswered = () => new LanekeeperError("REQUEST_TIMEOUT", "no answer");

/** Fails as often as it is told errors, then answers. */
function asking(...errors: Error[]) {
  let times = 0;
  const ask = async () => {
    const error = errors[times++];
    if (error !== undefined) throw error;
    return "answer";
  };
  return { ask, times: () => times };
}

test("what is not answered is asked again, and an answer ends it", async () => {
  const clock = new VirtualClock();
  const leaderless = new LanekeeperError("JETSTREAM_UNAVAILABLE", "no leader");
  const { ask, times } = asking(unanswered(), leaderless);
  const answer = patiently(clock, ask);
  await clock.advance(10_000);
  expect(await answer).toBe("answer");
  expect(times()).toBe(3);
});

test("after 15 s the last error is thrown; any other error at once", async () => {
  const clock = new VirtualClock();
  let asked = 0;
  const silent = patiently(clock, async () => {
    asked++;
    throw unanswered();
  });
  const told = expect(silent).rejects.toMatchObject({ code: "REQUEST_TIMEOUT" });
  await clock.advance(14_000);
  const before = asked;
  await clock.advance(60_000);
  await told;
  expect(asked).toBeGreaterThan(before);
  expect(asked).toBeLessThan(100);
  const refused = asking(new LanekeeperError("PERMISSION_DENIED", "no"));
  await expect(patiently(clock, refused.ask)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  expect(refused.times()).toBe(1);
});

test("whoever asks says which errors pass, and a signal ends the asking with its reason", async () => {
  const clock = new VirtualClock();
  const { ask, times } = asking(unanswered());
  await expect(patiently(clock, ask, { passes: () => false })).rejects.toThrow("no answer");
  expect(times()).toBe(1);
  const abort = new AbortController();
  const waiting = patiently(clock, () => Promise.reject(unanswered()), { signal: abort.signal });
  const told = expect(waiting).rejects.toThrow("enough");
  await clock.advance(1_000);
  abort.abort(new Error("enough"));
  await told;
});

test("what comes to nothing is tried again for 15 s", async () => {
  const clock = new VirtualClock();
  let tried = 0;
  const third = persistently(clock, async () => (++tried === 3 ? "done" : undefined));
  await clock.advance(5_000);
  expect(await third).toBe("done");
  const never = persistently(clock, async () => undefined);
  await clock.advance(60_000);
  expect(await never).toBeUndefined();
});
