import { expect, test } from "vitest";
import { DeliveryRun } from "./delivery-run.js";

test("O5: a run begins after what was delivered before, and goes on one by one", () => {
  const run = new DeliveryRun(4);
  expect([5, 6, 7].map((seq) => run.accepts(seq))).toEqual([true, true, true]);
  expect(run.last).toBe(7);
});

test.each([
  { what: "a gap", seq: 3 },
  { what: "a repetition", seq: 1 },
  { what: "a consumer that was rewound", seq: 0 },
])("O5: $what breaks the run and changes nothing", ({ seq }) => {
  const run = new DeliveryRun();
  run.accepts(1);
  expect(run.accepts(seq)).toBe(false);
  expect(run.last).toBe(1);
});
