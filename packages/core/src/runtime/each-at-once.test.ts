import { expect, test } from "vitest";
import { eachAtOnce } from "./each-at-once.js";

test("a bounded number runs at once, and results come in the order of the items", async () => {
  let running = 0;
  let most = 0;
  const results = await eachAtOnce([3, 1, 2], 2, async (item) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, item));
    running--;
    return item * 10;
  });
  expect(results).toEqual([30, 10, 20]);
  expect(most).toBe(2);
});

test("the first error ends it: what has not begun is not run", async () => {
  const begun: number[] = [];
  const run = async (item: number) => {
    begun.push(item);
    await new Promise((resolve) => setTimeout(resolve, item === 1 ? 1 : 50));
    if (item === 1) throw new Error("planted");
  };
  await expect(eachAtOnce([1, 2, 3, 4, 5, 6], 2, run)).rejects.toThrow("planted");
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(begun.length).toBeLessThan(5);
});
