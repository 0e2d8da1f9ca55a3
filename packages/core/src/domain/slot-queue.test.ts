import { describe, expect, test } from "vitest";
import { SlotQueue } from "./slot-queue.js";

function asker(queue: SlotQueue): { granted: string[]; ask: (name: string) => void } {
  const granted: string[] = [];
  return { granted, ask: (name) => queue.request({ grant: () => void granted.push(name) }) };
}

describe("SlotQueue", () => {
  test("grants up to its capacity, then in the order of asking as slots come free", () => {
    const queue = new SlotQueue(2);
    const { granted, ask } = asker(queue);
    for (const name of ["a", "b", "c", "d"]) ask(name);
    expect(granted).toEqual(["a", "b"]);
    queue.release();
    expect(granted).toEqual(["a", "b", "c"]);
    queue.release();
    queue.release();
    expect(granted).toEqual(["a", "b", "c", "d"]);
    expect(queue.used).toBe(1);
  });

  test("who asks later does not overtake who waits, though a slot comes free in between", () => {
    const queue = new SlotQueue(1);
    const { granted, ask } = asker(queue);
    ask("a");
    ask("b");
    queue.pause();
    queue.release();
    ask("c");
    queue.resume();
    queue.release();
    expect(granted).toEqual(["a", "b", "c"]);
  });

  test("while paused nothing is granted; resumed, everything that has room is", () => {
    const queue = new SlotQueue(2);
    const { granted, ask } = asker(queue);
    queue.pause();
    for (const name of ["a", "b", "c"]) ask(name);
    expect(granted).toEqual([]);
    queue.resume();
    expect(granted).toEqual(["a", "b"]);
  });

  test("a grant that gives its slot back at once lets the next one in", () => {
    const queue = new SlotQueue(1);
    const granted: number[] = [];
    queue.pause();
    for (let index = 0; index < 5_000; index++) {
      queue.request({
        grant() {
          granted.push(index);
          queue.release();
        },
      });
    }
    queue.resume();
    expect(granted).toEqual(Array.from({ length: 5_000 }, (_, index) => index));
    expect(queue.used).toBe(0);
  });
});
