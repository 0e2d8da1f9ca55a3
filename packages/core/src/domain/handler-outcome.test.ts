import { describe, expect, test } from "vitest";
import { RetryableError, TerminalError } from "./handler-errors.js";
import { decodeFailure, handlerFailure, schemaFailure } from "./handler-outcome.js";
import { LanekeeperError } from "./lanekeeper-error.js";
import { describeThrown } from "./thrown.js";

const getterThrows = Object.defineProperty(new Error("x"), "message", {
  get() {
    throw new Error("no message for you");
  },
});
const proxy = new Proxy(
  {},
  {
    get() {
      throw new Error("trap");
    },
  },
);

/** R13: whatever can be thrown. */
const thrown: [name: string, value: unknown][] = [
  ["an Error", new Error("down")],
  ["undefined", undefined],
  ["null", null],
  ["a text", "x"],
  ["an empty text", ""],
  ["a number", 7],
  ["a bigint", 7n],
  ["a symbol", Symbol("s")],
  ["a function", () => {}],
  ["a frozen object", Object.freeze({ code: "TERMINAL" })],
  ["an error whose message getter throws", getterThrows],
  ["a proxy that throws on every look", proxy],
  [
    "an object that refers to itself",
    Object.assign(
      {},
      {
        get self() {
          return this;
        },
      },
    ),
  ],
  ["a long text", "x".repeat(5_000)],
];

describe("R13: anything a handler throws", () => {
  test.each(thrown)("%s: retried, as a HANDLER_FAILED that can be shown", (_, value) => {
    const failure = handlerFailure(value);
    expect(failure).toMatchObject({ terminal: false, retryAfterMs: undefined });
    expect(failure.error.code).toBe("HANDLER_FAILED");
    expect(failure.error.cause).toBe(value);
    expect(failure.error.message.length).toBeLessThan(1_100);
  });

  test.each(thrown)("%s has a text that is not empty", (_, value) => {
    expect(describeThrown(value).length).toBeGreaterThan(0);
    expect(describeThrown(value).length).toBeLessThanOrEqual(1_000);
  });
});

describe("handlers steer by what they throw", () => {
  test("TerminalError: no retry", () => {
    const error = new TerminalError("bad address");
    expect(handlerFailure(error)).toEqual({ error, terminal: true, retryAfterMs: undefined });
  });

  test("RetryableError: tried again, after the time it names", () => {
    const error = new RetryableError("busy", { retryAfterMs: 1_500 });
    expect(handlerFailure(error)).toEqual({ error, terminal: false, retryAfterMs: 1_500 });
    expect(handlerFailure(new RetryableError("busy")).retryAfterMs).toBeUndefined();
    expect(handlerFailure(new RetryableError("now", { retryAfterMs: 0 })).retryAfterMs).toBe(0);
  });

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, "5"])(
    "a retryAfterMs of %s is not used",
    (retryAfterMs) => {
      const error = new RetryableError("busy", { retryAfterMs: retryAfterMs as number });
      expect(handlerFailure(error).retryAfterMs).toBeUndefined();
    },
  );

  test("a retryAfterMs beyond a day is a day", () => {
    const error = new RetryableError("later", { retryAfterMs: 1e15 });
    expect(handlerFailure(error).retryAfterMs).toBe(86_400_000);
  });

  test("another installed copy's TerminalError counts as well; a mere look-alike does not", () => {
    const brand = Symbol.for("lanekeeper.error");
    expect(handlerFailure({ [brand]: true, code: "TERMINAL" }).terminal).toBe(true);
    expect(handlerFailure({ code: "TERMINAL" }).terminal).toBe(false);
  });

  test("other errors of the library are failures like any other", () => {
    expect(handlerFailure(new LanekeeperError("PUBLISH_TIMEOUT", "slow"))).toMatchObject({
      terminal: false,
      error: { code: "HANDLER_FAILED" },
    });
  });
});

describe("payloads that cannot be handled are terminal", () => {
  test("the codec threw", () => {
    const cause = new SyntaxError("bad JSON");
    expect(decodeFailure("paid", cause)).toMatchObject({
      terminal: true,
      error: { code: "DECODE_FAILED", cause, message: expect.stringContaining('"paid"') },
    });
  });

  test("the schema refused: issues with their paths, at most five", () => {
    const issues = [
      { message: "required", path: ["items", 0, { key: "sku" }] },
      { message: "plain" },
      ...Array.from({ length: 9 }, (_, index) => ({ message: `more ${index}`, path: [] })),
    ];
    const { error, terminal } = schemaFailure("placed", issues);
    expect(terminal).toBe(true);
    expect(error.code).toBe("SCHEMA_MISMATCH");
    expect(error.message).toContain("items.0.sku: required; plain; more 0");
    expect(error.message).not.toContain("more 3");
  });
});
