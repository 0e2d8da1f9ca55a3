import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, test } from "vitest";
import type { Handler } from "../domain/event.js";
import { resolveWorkerOptions, type WorkerOptions } from "../domain/worker-options.js";
import { HandlerRun, type RunOutcome } from "./handler-run.js";
import { VirtualClock } from "./virtual-clock.test-support.js";

type Any = Record<string, unknown>;
const fence = { token: 1, incarnation: "i" };

function scene(
  handler: Handler<Any>,
  options: Partial<WorkerOptions<Any>> = {},
  text = '{"a":1}',
  before: (run: HandlerRun) => void = () => {},
) {
  const clock = new VirtualClock();
  const run = new HandlerRun("k", 7, clock);
  const meta = {
    key: "k",
    type: "t",
    subject: "s",
    bytes: new TextEncoder().encode(text),
    headers: {},
    lane: 0,
    generation: 1,
    seq: 7,
    storedAt: new Date(0),
    attempt: 1,
  };
  const resolved = resolveWorkerOptions<Any>({ group: "g", ...options }, "w");
  let ours = true;
  before(run);
  let settle: (outcome: RunOutcome) => void = () => {};
  const later = new Promise<RunOutcome>((resolve) => {
    settle = resolve;
  });
  const atOnce = run.execute(meta, resolved, handler, fence, () => ours, settle);
  return {
    clock,
    run,
    atOnce,
    outcome: atOnce ?? later,
    lose: () => {
      ours = false;
    },
  };
}

const schemaOf = (validate: (value: unknown) => unknown) =>
  ({ "~standard": { version: 1, vendor: "test", validate } }) as StandardSchemaV1<unknown, unknown>;

describe("a run", () => {
  test("gives the handler its event and a frozen context, and is handled when the handler has settled", async () => {
    const seen: unknown[] = [];
    const { outcome } = scene((event, context) => {
      seen.push(event.data, context.group, context.workerId, context.fence, context.signal.aborted);
      seen.push(Object.isFrozen(context));
    });
    expect(await outcome).toEqual({ type: "handled" });
    expect(seen).toEqual([{ a: 1 }, "g", "w", fence, false, true]);
  });

  test.each([
    [
      "throws at once",
      () => {
        throw new Error("x");
      },
    ],
    ["rejects", () => Promise.reject(new Error("x"))],
    ["rejects with nothing", () => Promise.reject(undefined)],
  ] as [string, Handler<Any>][])(
    "R13: a handler that %s has failed; the run never rejects",
    async (_, handler) => {
      expect(await scene(handler).outcome).toMatchObject({ type: "failed", terminal: false });
    },
  );
});

describe("data", () => {
  test("that the codec cannot read is terminal, and the handler is not called", async () => {
    const { outcome } = scene(() => expect.unreachable(), {}, "{");
    expect(await outcome).toMatchObject({ type: "failed", terminal: true, error: { code: "DECODE_FAILED" } });
  });

  test("that does not fit its schema is terminal; what fits arrives as the schema's output", async () => {
    const refusing = schemaOf(() => ({ issues: [{ message: "no" }] }));
    expect(await scene(() => {}, { schema: refusing }).outcome).toMatchObject({
      type: "failed",
      terminal: true,
      error: { code: "SCHEMA_MISMATCH" },
    });
    const seen: unknown[] = [];
    const mapping = schemaOf(async () => ({ value: "output" }));
    await scene((event) => void seen.push(event.data), { schema: mapping }).outcome;
    expect(seen).toEqual(["output"]);
  });

  test.each([
    ["a schema that takes its time", async () => ({ value: 1 })],
    ["a schema that answers at once", () => ({ value: 1 })],
  ])("O6: no longer ours when it has been checked by %s: the handler is not called", async (_, validate) => {
    const { outcome, lose } = scene(() => expect.unreachable(), { schema: schemaOf(validate) });
    lose();
    expect(await outcome).toEqual({ type: "unstarted" });
  });

  test("O6: aborted while it was checked: the handler is not called", async () => {
    const schema = schemaOf(async () => ({ value: 1 }));
    const { outcome, run } = scene(() => expect.unreachable(), { schema });
    run.abort("CLOSING", "grace over");
    expect(await outcome).toEqual({ type: "unstarted" });
  });

  test("O6: aborted before it was read: the handler is not called", async () => {
    const aborted = (run: HandlerRun) => run.abort("FENCED", "lapsed");
    expect(await scene(() => expect.unreachable(), {}, "{}", aborted).outcome).toEqual({ type: "unstarted" });
  });

  test("what ends at once has its outcome at once, without a promise", () => {
    expect(scene(() => {}).atOnce).toEqual({ type: "handled" });
    const throwing = () => {
      throw new Error("x");
    };
    expect(scene(throwing).atOnce).toMatchObject({ type: "failed" });
    expect(scene(async () => {}).atOnce).toBeUndefined();
  });
});

describe("R15: handlerTimeoutMs", () => {
  test("aborts the signal at its time; a handler that then settles well counts as failed", async () => {
    let signal: AbortSignal | undefined;
    let finish = () => {};
    const { clock, outcome, run } = scene(
      (_, context) => {
        signal = context.signal;
        return new Promise((resolve) => {
          finish = resolve;
        });
      },
      { handlerTimeoutMs: 2_000 },
    );
    await clock.advance(1_999);
    expect(signal?.aborted).toBe(false);
    expect(run.reportStuck()).toBe(false);
    await clock.advance(1);
    expect(signal?.reason).toMatchObject({ code: "HANDLER_TIMEOUT" });
    await clock.advance(1_000);
    expect([run.reportStuck(), run.reportStuck()]).toEqual([true, false]);
    await clock.advance(3_000);
    expect(run.reportStuck()).toBe(true);
    expect(run.ageMs).toBe(6_000);
    finish();
    expect(await outcome).toMatchObject({
      type: "failed",
      terminal: false,
      error: { code: "HANDLER_TIMEOUT" },
    });
  });

  test("a handler that ends in time leaves no timer", async () => {
    const { clock, outcome } = scene(() => {}, { handlerTimeoutMs: 2_000 });
    await outcome;
    expect(clock.timers).toBe(0);
  });

  test("data that takes its time to be read counts: the handler is not called after it", async () => {
    let validated = (_: unknown) => {};
    const slow = schemaOf(
      () =>
        new Promise((resolve) => {
          validated = resolve;
        }),
    );
    const { clock, outcome } = scene(() => expect.unreachable(), { handlerTimeoutMs: 2_000, schema: slow });
    await clock.advance(2_000);
    validated({ value: 1 });
    expect(await outcome).toMatchObject({ type: "failed", error: { code: "HANDLER_TIMEOUT" } });
  });
});

test("the first abort counts", async () => {
  const reasons: unknown[] = [];
  const { run, outcome, clock } = scene(
    (_, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          reasons.push(signal.reason.code);
          resolve();
        });
      }),
  );
  await clock.advance(0);
  run.abort("FENCED", "a");
  run.abort("CLOSING", "b");
  await outcome;
  expect(reasons).toEqual(["FENCED"]);
});
