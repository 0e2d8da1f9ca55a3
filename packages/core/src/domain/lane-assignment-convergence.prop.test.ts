import fc from "fast-check";
import { expect, test } from "vitest";
import { assignLanes, type LaneOwners } from "./lane-assignment.js";

const names = ["a", "b", "c", "d", "e", "f", "g"] as const;
const deployment = fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 7 });
const startingOwners = fc.array(fc.option(fc.constantFrom(...names, "gone"), { nil: undefined }), {
  minLength: 1,
  maxLength: 24,
});

/** One member looks, plans for all, and does its own share of it: lets go of what is not its own, takes what is free. */
interface Turn {
  /** Which member, counted around the deployment. */
  readonly member: number;
  /** How many turns old what it sees is. */
  readonly staleness: number;
  /** It is stopped after so many of its lane changes. */
  readonly changes: number;
}
const turns = fc.array(fc.record({ member: fc.nat(6), staleness: fc.nat(4), changes: fc.nat(6) }), {
  maxLength: 40,
});
const runs = { numRuns: 2_000 };

test("repeated planning converges: after turns on stale views and a change of members, current views balance the lanes", () => {
  fc.assert(
    fc.property(deployment, deployment, startingOwners, turns, (before, members, owners, unrest) => {
      const lanes = new Deployment(owners);
      for (const [index, turn] of unrest.entries()) {
        lanes.turn(index < unrest.length / 2 ? before : members, turn);
      }
      lanes.settle(members);
      expectBalanced(members, lanes.owners);
    }),
    runs,
  );
});

test("on current views a lane is taken at most once on the way, in whatever order members act", () => {
  fc.assert(
    fc.property(
      deployment,
      startingOwners,
      fc.array(fc.nat(6), { maxLength: 60 }),
      (members, owners, order) => {
        const lanes = new Deployment(owners);
        for (const index of order) lanes.act(members, at(members, index), lanes.owners);
        lanes.settle(members);
        expectBalanced(members, lanes.owners);
        expect(Math.max(...lanes.taken)).toBeLessThanOrEqual(1);
      },
    ),
    runs,
  );
});

/** The lanes as the server has them: only what is free, or whose owner is gone, can be taken. */
class Deployment {
  owners: LaneOwners;
  /** How often each lane was taken. */
  readonly taken: number[];
  readonly #past: LaneOwners[] = [];

  constructor(owners: LaneOwners) {
    this.owners = owners;
    this.taken = owners.map(() => 0);
  }

  /** Everybody acts in turn until a whole round changes nothing; fails when that takes more rounds than there are lanes. */
  settle(members: readonly string[]): void {
    for (let round = 0; round <= this.owners.length; round++) {
      const before = this.owners;
      for (const member of members) this.act(members, member, this.owners);
      if (this.owners.every((owner, lane) => owner === before[lane])) return;
    }
    throw new Error(`the lanes are still moving after ${this.owners.length} rounds`);
  }

  turn(live: readonly string[], { member, staleness, changes }: Turn): void {
    const seen = this.#past.at(-1 - staleness) ?? this.owners;
    this.act(live, at(live, member), seen, changes);
  }

  act(live: readonly string[], member: string, seen: LaneOwners, changes = Number.POSITIVE_INFINITY): void {
    this.#past.push(this.owners);
    const owners = [...this.owners];
    const isFree = (lane: number) => {
      const owner = owners[lane];
      return owner === undefined || !live.includes(owner);
    };
    let left = changes;
    for (const [lane, target] of assignLanes(live, seen).entries()) {
      if (left === 0) break;
      if (owners[lane] === member && target !== member) owners[lane] = undefined;
      else if (target === member && owners[lane] !== member && isFree(lane)) {
        owners[lane] = member;
        this.taken[lane] = (this.taken[lane] ?? 0) + 1;
      } else continue;
      left--;
    }
    this.owners = owners;
  }
}

function at(members: readonly string[], index: number): string {
  return members[index % members.length] ?? "a";
}

function expectBalanced(members: readonly string[], owners: LaneOwners): void {
  const counts = members.map((member) => owners.filter((owner) => owner === member).length);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(owners.length);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
}
