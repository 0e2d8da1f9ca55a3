import { describe, expect, test } from "vitest";
import { SlotQueue } from "./slot-queue.js";

function asker(queue: SlotQueue): { granted: string[]; ask: (name: string, lane?: number) => void } {
  const granted: string[] = [];
  return {
    granted,
    ask: (name, lane = 0) => queue.request(lane, { grant: () => void granted.push(name) }),
  };
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

  test("lanes take turns: one with many keys does not hold up one with few", () => {
    const queue = new SlotQueue(1);
    const { granted, ask } = asker(queue);
    for (const name of ["a0", "a1", "a2", "a3"]) ask(name, 0);
    ask("b0", 1);
    ask("c0", 2);
    ask("b1", 1);
    for (let index = 0; index < 6; index++) queue.release();
    expect(granted).toEqual(["a0", "a1", "b0", "c0", "a2", "b1", "a3"]);
  });

  test("who asks later does not overtake who waits, though a slot comes free in between", () => {
    const queue = new SlotQueue(1);
    const { granted, ask } = asker(queue);
    ask("a");
    ask("b");
    queue.pause("layout");
    queue.release();
    ask("c");
    queue.resume("layout");
    queue.release();
    expect(granted).toEqual(["a", "b", "c"]);
  });

  test("while paused nothing is granted; resumed, everything that has room is", () => {
    const queue = new SlotQueue(2);
    const { granted, ask } = asker(queue);
    queue.pause("layout");
    for (const name of ["a", "b", "c"]) ask(name);
    expect(granted).toEqual([]);
    queue.resume("layout");
    expect(granted).toEqual(["a", "b"]);
  });

  test("O1: two reasons to pause are taken back one by one; the same one twice counts once", () => {
    const queue = new SlotQueue(1);
    const { granted, ask } = asker(queue);
    queue.pause("layout");
    queue.pause("verify");
    queue.pause("verify");
    ask("a");
    queue.resume("verify");
    queue.resume("never given");
    expect(granted).toEqual([]);
    queue.resume("layout");
    expect(granted).toEqual(["a"]);
  });

  test("a grant that gives its slot back at once lets the next one in", () => {
    const queue = new SlotQueue(1);
    const granted: number[] = [];
    queue.pause("layout");
    for (let index = 0; index < 5_000; index++) {
      queue.request(index % 3, {
        grant() {
          granted.push(index);
          queue.release();
        },
      });
    }
    queue.resume("layout");
    expect(granted).toEqual(Array.from({ length: 5_000 }, (_, index) => index));
    expect(queue.used).toBe(0);
  });
});
