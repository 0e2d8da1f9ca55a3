import { describe, expect, test } from "vitest";
import type { Answer } from "./answer.js";
import { DeliveredEvent } from "./delivered-event.js";
import { LaneAnswers } from "./lane-answers.js";
import type { Delivery } from "./lane-feed-port.js";
import { LaneScene } from "./lane-host.test-support.js";

/** Answers of one lane, and whether each was asked to be sent urgently. */
function desk(maxAckPending: number) {
  const scene = new LaneScene(maxAckPending === 1 ? {} : { assignment: "owned", maxAckPending });
  const soon: Answer[] = [];
  const urgent: boolean[] = [];
  const sendAnswers = () => {
    for (const answer of soon.splice(0)) answer.send(scene.clock.now(), scene.clock.wall());
  };
  const sendSoon = (answer: Answer, isUrgent: boolean) => {
    soon.push(answer);
    urgent.push(isUrgent);
  };
  let rewinds = 0;
  const policy = { tellsReleases: true, letGo: () => void rewinds++ };
  const answers = new LaneAnswers({ ...scene.host, sendSoon, sendAnswers }, policy);
  let seq = 0;
  const ack = (held: number, running: number) => {
    const delivery = { seq: ++seq } as Delivery;
    const event = new DeliveredEvent("k", "t", delivery, scene.policy.newHold(), undefined);
    answers.give(event, { held, running }, "ack", 0, "");
  };
  return { answers, ack, urgent, sendAnswers, sent: scene.feed.sent, scene, rewinds: () => rewinds };
}

test("O6: an answer whose hold has lapsed by the time it is sent is not sent, and has the lane rewound", () => {
  const { ack, sendAnswers, sent, scene, rewinds } = desk(8);
  ack(0, 5);
  scene.pinged = false;
  scene.clock.freeze(60_000);
  sendAnswers();
  expect([sent, rewinds(), scene.looks]).toEqual([[], 1, 1]);
});

describe("an answer is urgent", () => {
  test("R22: always with maxAckPending 1, where the next event comes only with it", () => {
    const { ack, urgent } = desk(1);
    ack(0, 0);
    ack(0, 0);
    expect(urgent).toEqual([true, true]);
  });

  test("not as long as the server may deliver more than half of maxAckPending", () => {
    const { ack, urgent, sendAnswers } = desk(8);
    ack(2, 0);
    ack(1, 0);
    expect(urgent).toEqual([false, false]);
    ack(1, 0);
    expect(urgent.at(-1)).toBe(true);
    sendAnswers();
    ack(0, 0);
    expect(urgent.at(-1)).toBe(false);
  });

  test("in a full lane when it runs dry: with half as many answers waiting as handlers running", () => {
    const { ack, urgent } = desk(8);
    for (let number = 0; number < 3; number++) ack(7 - number, 5);
    expect(urgent).toEqual([false, false, true]);
  });

  test("in a lane that is full of events which wait for a retry", () => {
    const { ack, urgent } = desk(8);
    ack(7, 1);
    expect(urgent).toEqual([true]);
  });
});

describe("closing", () => {
  test("O3: what waits to be sent when a drain begins is confirmed with the rest before the lane is given back", async () => {
    const { answers, ack, sent } = desk(8);
    ack(1, 1);
    answers.beginDrain();
    expect(sent).toEqual([]);
    ack(0, 0);
    answers.finish();
    expect(sent).toEqual(["ack 2 confirmed", "ack 1 confirmed"]);
    expect(await answers.acksConfirmed()).toBe(true);
  });
});
