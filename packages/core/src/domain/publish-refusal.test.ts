import { expect, test } from "vitest";
import { batchFailure, publishRefusal } from "./publish-refusal.js";

const refusal = (status: number, code: number, description: string, guarded = false) => {
  const { type, error } = publishRefusal({ status, code, description }, guarded, "orders.1.k.t");
  return [type, error.code];
};

test("P1: only answers that leave no doubt are refusals", () => {
  expect(refusal(400, 10_071, "wrong last sequence: 4", true)).toEqual(["refused", "WRONG_LAST_SEQUENCE"]);
  expect(refusal(400, 10_054, "message size exceeds maximum allowed")).toEqual([
    "refused",
    "PAYLOAD_TOO_LARGE",
  ]);
  expect(refusal(400, 10_060, "expected stream does not match")).toEqual(["refused", "PUBLISH_REJECTED"]);
});

test("wrong last sequence without an expectation of ours is the server's own text", () => {
  expect(refusal(400, 10_071, "wrong last sequence: 4")).toEqual(["refused", "PUBLISH_REJECTED"]);
});

test("R12: limits of stream and account are STREAM_FULL, a failing store is unclear", () => {
  expect(refusal(503, 10_077, "maximum messages exceeded")).toEqual(["refused", "STREAM_FULL"]);
  expect(refusal(503, 10_077, "maximum bytes exceeded")).toEqual(["refused", "STREAM_FULL"]);
  expect(refusal(400, 10_002, "resource limits exceeded for account")).toEqual(["refused", "STREAM_FULL"]);
  expect(refusal(503, 10_077, "no space left on device")[0]).toBe("unclear");
});

test("P1: in process, in flight and overload are tried again; other 503s are unclear", () => {
  for (const code of [10_158, 10_164, 10_163, 10_167, 10_023]) {
    expect(refusal(400, code, "later", true)[0]).toBe("not-taken");
  }
  expect(refusal(503, 10_009, "no quorum")[0]).toBe("unclear");
});

test("the message names subject, text and code", () => {
  const { error } = publishRefusal({ status: 400, code: 1, description: "nope" }, false, "orders.1.k.t");
  expect(error.message).toMatch(/"orders\.1\.k\.t".*"nope".*1/);
});

test.each([
  [400, 10_174, "atomic publish is disabled", "none"],
  [400, 10_176, "atomic publish batch is incomplete", "none"],
  [400, 10_201, "atomic publish batch contains duplicate message id", "none"],
  [400, 10_054, "message size exceeds maximum allowed", "none"],
  [503, 10_077, "maximum messages exceeded", "none"],
  [503, 10_077, "no space left on device", "unclear"],
  [400, 10_002, "resource limits exceeded for account", "part"],
  [500, 10_047, "insufficient storage resources available", "part"],
  [503, 10_008, "JetStream system temporarily unavailable", "unclear"],
])("P1: a batch answered with status %i, code %i (%s): %s", (status, code, description, failure) => {
  expect(batchFailure({ status, code, description })).toBe(failure);
});
