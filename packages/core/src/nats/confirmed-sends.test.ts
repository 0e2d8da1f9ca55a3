import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { VirtualClock } from "../runtime/virtual-clock.test-support.js";
import { ConfirmedSends } from "./confirmed-sends.js";

const timeoutMs = 5_000;

/** A connection that is a list of what was published; the test answers. */
function scene() {
  const clock = new VirtualClock();
  const published: { subject: string; reply: string }[] = [];
  const state = { takes: true, closed: false };
  let callback: (error: Error | null, message: Msg) => void = () => {};
  const connection = {
    options: {},
    subscribe(_subject: string, options: { callback: typeof callback }) {
      callback = options.callback;
      return {
        isClosed: () => state.closed,
        unsubscribe: () => {
          state.closed = true;
        },
      };
    },
    publish(subject: string, _payload: Uint8Array, { reply }: { reply: string }) {
      if (!state.takes) throw new Error("draining");
      published.push({ subject, reply });
    },
  } as unknown as NatsConnection;
  const sends = new ConfirmedSends(connection, clock, timeoutMs);
  const answers: string[] = [];
  const send = (name: string) =>
    sends.send(name, new Uint8Array(), (confirmed) => void answers.push(`${name} ${confirmed}`));
  /** Answers the send of this number; `code` is in the headers, 503 for nobody there. */
  const answer = (index: number, code?: number) =>
    callback(null, {
      subject: published[index]?.reply,
      headers: code === undefined ? undefined : { code },
    } as unknown as Msg);
  return { clock, published, state, sends, answers, send, answer };
}

test("every send has its own reply subject, and its answer is its own, once", () => {
  const { published, answers, send, answer } = scene();
  send("a");
  send("b");
  expect(new Set(published.map(({ reply }) => reply)).size).toBe(2);
  answer(1);
  answer(1);
  answer(0);
  expect(answers).toEqual(["b true", "a true"]);
});

test("nobody there is no confirmation", () => {
  const { answers, send, answer } = scene();
  send("a");
  answer(0, 503);
  expect(answers).toEqual(["a false"]);
});

test("what has no answer within the timeout is unconfirmed when expire finds it; the rest waits on", () => {
  const { clock, sends, answers, send, answer } = scene();
  send("a");
  clock.freeze(1_000);
  send("b");
  clock.freeze(timeoutMs - 1_001);
  sends.expire();
  expect(answers).toEqual([]);
  clock.freeze(1);
  sends.expire();
  expect(answers).toEqual(["a false"]);
  answer(0);
  answer(1);
  expect(answers).toEqual(["a false", "b true"]);
  clock.freeze(timeoutMs);
  sends.expire();
  expect(answers).toHaveLength(2);
});

test("a connection that takes nothing any more is no confirmation, and no throw", () => {
  const { state, answers, send } = scene();
  state.takes = false;
  send("a");
  expect(answers).toEqual(["a false"]);
});

test("closed, everything that waits is unconfirmed, once, and the subscription gone", () => {
  const { state, sends, answers, send } = scene();
  send("a");
  send("b");
  sends.close();
  sends.close();
  expect(answers).toEqual(["a false", "b false"]);
  expect(state.closed).toBe(true);
});
