import { describe, expect, test } from "vitest";
import { type PullAnswer, PullState } from "./pull-state.js";

const rules = { batch: 3, expiresMs: 30_000, heartbeatMs: 2_000 };

function started(): PullState {
  const state = new PullState(rules);
  expect(state.start(0)).toEqual({ pull: 1 });
  return state;
}

/** The time of the next pull after `from`, looked for every 10 ms. */
function nextPull(state: PullState, from: number): number {
  for (let now = from; now <= from + 60_000; now += 10) if (state.tick(now).pull !== undefined) return now;
  throw new Error("no pull within a minute");
}

describe("one open pull at a time", () => {
  test("it is renewed when its batch is used up, and not before", () => {
    const state = started();
    expect(state.delivered(10)).toEqual({});
    expect(state.delivered(20)).toEqual({});
    expect(state.delivered(30)).toEqual({ pull: 2 });
  });

  test.each([404, 408])("%i after its time: renewed at once", (code) => {
    expect(started().status(1, code, "Request Timeout", 30_000)).toEqual({ pull: 2 });
  });

  test("a status of an earlier pull means nothing", () => {
    const state = started();
    state.status(1, 408, "", 30_000);
    expect(state.status(1, 409, "Consumer Deleted", 30_001)).toEqual({});
  });

  test("heartbeats keep it open", () => {
    const state = started();
    for (let now = 2_000; now <= 28_000; now += 2_000) {
      expect(state.status(1, 100, "Idle Heartbeat", now)).toEqual({});
      expect(state.tick(now)).toEqual({});
    }
  });

  test("starting over after a reconnect forgets what was open", () => {
    const state = started();
    expect(state.start(500)).toEqual({ pull: 2 });
    expect(state.status(1, 408, "", 40_000)).toEqual({});
  });
});

describe("trouble", () => {
  const cases: [code: number, description: string, kind: string | undefined][] = [
    [409, "Consumer Deleted", "consumer-deleted"],
    [409, "Stream Deleted", "stream-deleted"],
    [503, "", "no-responders"],
    [409, "Exceeded MaxWaiting", "refused"],
    [409, "Message Size Exceeds MaxBytes", "refused"],
    [400, "Bad Request", "refused"],
    [409, "Leadership Change", "leader-changed"],
    [409, "Server Shutdown", "leader-changed"],
    [404, "No Messages", undefined],
    [408, "Request Timeout", undefined],
  ];

  test.each(cases)(
    "%i %s right after the request: told as %s, tried again later",
    (code, description, kind) => {
      const state = started();
      const answer: PullAnswer = state.status(1, code, description, 5);
      expect(answer.pull).toBeUndefined();
      expect(answer.trouble?.kind).toBe(kind);
      expect(state.tick(6)).toEqual({});
      expect(nextPull(state, 6)).toBeGreaterThanOrEqual(100);
    },
  );

  test.each(cases)(
    "%i %s again and again is no hot loop: at most one pull in 2 s, and never none",
    (code, text) => {
      const state = started();
      let number = 1;
      let pulls = 0;
      for (let now = 0; now <= 60_000; now += 10) {
        state.status(number, code, text, now);
        const { pull } = state.tick(now);
        if (pull === undefined) continue;
        number = pull;
        pulls++;
      }
      expect(pulls).toBeGreaterThanOrEqual(28);
      expect(pulls).toBeLessThanOrEqual(36);
    },
  );

  test("R40: silence for two and a half heartbeats is told and the pull renewed, every time", () => {
    const state = started();
    expect(state.tick(5_000)).toEqual({});
    expect(state.tick(5_001)).toMatchObject({ pull: 2, trouble: { kind: "silent" } });
    expect(state.tick(5_002)).toEqual({});
    expect(state.tick(10_010)).toMatchObject({ pull: 3, trouble: { kind: "silent" } });
  });

  test("the first sign of life after trouble is told, once", () => {
    const state = started();
    state.tick(6_000);
    expect(state.status(2, 100, "", 6_500)).toEqual({ recovered: true });
    expect(state.status(2, 100, "", 7_000)).toEqual({});
    state.status(2, 409, "Consumer Deleted", 7_500);
    expect(state.delivered(7_600)).toEqual({ recovered: true });
  });

  test("a delivery ends the growing of the delays", () => {
    const state = started();
    let now = 0;
    for (let number = 1; number <= 6; number++) {
      state.status(number, 503, "", now);
      now = nextPull(state, now);
    }
    state.delivered(now);
    state.status(7, 503, "", now);
    expect(nextPull(state, now) - now).toBe(100);
  });
});
