import { describe, expect, test } from "vitest";
import { assignLanes } from "./lane-assignment.js";

const free = (lanes: number): undefined[] => Array.from({ length: lanes }, () => undefined);

describe("who is to have each lane", () => {
  test("one member has them all; none leaves them free", () => {
    expect(assignLanes(["a"], free(3))).toEqual(["a", "a", "a"]);
    expect(assignLanes([], ["gone", "gone", undefined])).toEqual(free(3));
  });

  test("more members than lanes: each lane has one of them, nobody has two", () => {
    const target = assignLanes(["a", "b", "c", "d"], free(2));
    expect(new Set(target).size).toBe(2);
  });

  test("R32: a member that joins takes its share and nothing else moves", () => {
    const owners = ["a", "a", "a", "b", "b", "b"];
    const target = assignLanes(["a", "b", "c"], owners);
    const moved = owners.flatMap((owner, lane) => (target[lane] === owner ? [] : [target[lane]]));
    expect(moved).toEqual(["c", "c"]);
  });

  test("R31: the lanes of one that is gone are spread over the others, whose own stay", () => {
    const owners = ["a", "b", "c", "a", "b", "c"];
    const target = assignLanes(["a", "b"], owners);
    expect(owners.every((owner, lane) => owner === "c" || target[lane] === owner)).toBe(true);
    expect(target.filter((owner) => owner === "a")).toHaveLength(3);
  });

  test("the odd lanes stay with those that have them", () => {
    const owners = ["b", "b", "a", undefined, "b"];
    expect(assignLanes(["a", "b"], owners)).toEqual(["b", "b", "a", "a", "b"]);
  });
});
