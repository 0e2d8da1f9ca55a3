import { expect, test } from "vitest";
import { PublishWait } from "./publish-wait.js";

test("an answer is waited for four times as long as answers took, within bounds, and longer with each attempt", () => {
  const wait = new PublishWait(30_000);
  expect(wait.forAnswer(1)).toBe(500);
  for (let n = 0; n < 100; n++) wait.answered(400);
  expect(Math.round(wait.forAnswer(1))).toBe(1_600);
  expect(Math.round(wait.forAnswer(2))).toBe(3_200);
  expect(wait.forAnswer(9)).toBe(7_500);
});

test("a server is far away when even its fastest answer took 10 ms; one fast answer shows that it is near", () => {
  const wait = new PublishWait(30_000);
  expect(wait.far).toBe(false);
  for (const ms of [80, 50, 300]) wait.answered(ms);
  expect(wait.far).toBe(true);
  wait.answered(2);
  for (let n = 0; n < 100; n++) wait.answered(300);
  expect(wait.far).toBe(false);
});
