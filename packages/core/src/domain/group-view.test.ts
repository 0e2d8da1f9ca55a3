import { describe, expect, test } from "vitest";
import { type ClaimRecord, formatClaim } from "./claim-record.js";
import { GroupView } from "./group-view.js";
import { formatMember, type MemberRecord } from "./member-record.js";

const leaseMs = 4_000;
const settleMs = leaseMs / 4;

/** A view of four lanes, with a writer that numbers the revisions. */
function scene() {
  const view = new GroupView(4, settleMs, leaseMs);
  let revision = 0;
  return {
    view,
    member(id: string, now: number, status: MemberRecord["status"] = "live") {
      const record = formatMember({ version: 1, name: id, leaseMs, beat: revision, status });
      return view.member(id, ++revision, record, now);
    },
    claim(lane: number, now: number, more: Partial<ClaimRecord> = {}) {
      const record = {
        version: 1,
        incarnation: "i",
        nonce: "n",
        epoch: 1,
        consumerEpoch: 1,
        startSeq: 1,
        deaths: [],
      };
      return view.claim(lane, ++revision, formatClaim({ ...record, ...more }), now);
    },
  };
}

const lanesOf = (claims: readonly { lane: number }[]): number[] => claims.map(({ lane }) => lane);

describe("what one member does about the lanes", () => {
  test("one that is not a live member does nothing", () => {
    const { view, member } = scene();
    expect(view.plan("a", "i", 0)).toEqual({ claim: [], mine: [], giveBack: [] });
    member("a", 0, "leaving");
    expect(view.plan("a", "i", 0)).toEqual({ claim: [], mine: [], giveBack: [] });
  });

  test("alone it claims every lane; of another incarnation is nobody's", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    claim(1, 0, { owner: "b", incarnation: "before" });
    expect(lanesOf(view.plan("a", "i", 0).claim)).toEqual([0, 1, 2, 3]);
  });

  test("lanes of a live owner, or of one whose record is not there, are left alone; a newer build's, too", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    member("b", 0);
    claim(0, 0, { owner: "b" });
    claim(1, 0, { owner: "unknown" });
    view.claim(2, 99, JSON.stringify({ version: 99 }), 0);
    const claims = ["a", "b"].flatMap((self) => lanesOf(view.plan(self, "i", 0).claim));
    expect(claims).toEqual([3]);
  });

  test("R32: a lane that is given back for somebody is left to them for a moment, as long as they live", () => {
    const { view, member, claim } = scene();
    for (const id of ["a", "b"]) member(id, 0);
    for (const lane of [0, 1]) claim(lane, 0, { owner: "a" });
    for (const lane of [2, 3]) claim(lane, 10, { givenTo: "b" });
    expect(view.plan("a", "i", 20).claim).toEqual([]);
    expect(lanesOf(view.plan("b", "i", 20).claim)).toEqual([2, 3]);
    member("b", 30, "leaving");
    expect(lanesOf(view.plan("a", "i", 40).claim)).toEqual([2, 3]);
  });

  test("R32: lanes move to a member only once it has been there for a moment", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    for (const lane of [0, 1, 2, 3]) claim(lane, 0, { owner: "a" });
    member("b", 1_000);
    expect(view.plan("a", "i", 1_000 + settleMs - 1).giveBack).toEqual([]);
    expect(view.plan("a", "i", 1_000 + settleMs).giveBack).toEqual([
      { lane: 2, to: "b" },
      { lane: 3, to: "b" },
    ]);
  });

  test("R31: lanes of a dead member go to those that have been there for a lease, and say whose they were", () => {
    const { view, member, claim } = scene();
    for (const id of ["a", "dead"]) member(id, 0);
    for (const lane of [0, 1]) claim(lane, 0, { owner: "a" });
    for (const lane of [2, 3]) claim(lane, 0, { owner: "dead" });
    member("new", 5_000);
    member("a", 5_900);
    member("dead", 6_000, "dead");
    expect(view.plan("a", "i", 6_000).claim).toEqual([
      { lane: 2, deadOwner: "dead" },
      { lane: 3, deadOwner: "dead" },
    ]);
    expect(view.plan("new", "i", 6_000).claim).toEqual([]);
  });

  test("R31: when nobody else has been there for so long, the newest takes them", () => {
    const { view, member, claim } = scene();
    member("dead", 0);
    for (const lane of [0, 1, 2, 3]) claim(lane, 0, { owner: "dead" });
    member("new", 100);
    member("dead", 4_000, "dead");
    expect(lanesOf(view.plan("new", "i", 4_000).claim)).toEqual([0, 1, 2, 3]);
  });

  test("R31: lanes are not moved to a member that has not beaten since it came", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    for (const lane of [0, 1, 2, 3]) claim(lane, 0, { owner: "a" });
    member("b", 1_000);
    expect(view.plan("a", "i", 1_000 + settleMs + 1).giveBack).toEqual([]);
    member("b", 1_000 + settleMs + 10);
    expect(lanesOf(view.plan("a", "i", 1_000 + settleMs + 20).giveBack)).toEqual([2, 3]);
  });

  test("R31: lanes of a dead member do not wait for a share of one that died, too, and is not called dead yet", () => {
    const { view, member, claim } = scene();
    for (const id of ["a", "dead", "dying"]) member(id, 0);
    for (const lane of [0, 1]) claim(lane, 0, { owner: "a" });
    for (const lane of [2, 3]) claim(lane, 0, { owner: "dead" });
    for (const now of [1_000, 2_000, 3_000]) for (const id of ["a", "dying"]) member(id, now);
    member("a", 6_900);
    member("dead", 7_000, "dead");
    expect(lanesOf(view.plan("a", "i", 7_000).claim)).toEqual([2, 3]);
  });

  test("a member that beats slowly but steadily keeps its lanes: it is measured by its own rhythm", () => {
    const { view, member, claim } = scene();
    const slowMs = 2 * settleMs;
    for (const lane of [0, 1]) claim(lane, 0, { owner: "a" });
    for (let beat = 0; beat <= 5; beat++) for (const id of ["a", "b"]) member(id, beat * slowMs);
    const last = 5 * slowMs;
    for (const lane of [2, 3]) claim(lane, last, { givenTo: "b" });
    expect(view.plan("a", "i", last + settleMs + 1).claim).toEqual([]);
    expect(lanesOf(view.plan("b", "i", last + settleMs + 1).claim)).toEqual([2, 3]);
  });

  test("R31: a lane given back for a member that beats no more does not wait for it to be called dead", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    for (const lane of [0, 1]) claim(lane, 0, { owner: "a" });
    member("dead", 5_000);
    for (const lane of [2, 3]) claim(lane, 5_500, { givenTo: "dead" });
    expect(view.plan("a", "i", 5_000 + settleMs).claim).toEqual([]);
    expect(lanesOf(view.plan("a", "i", 5_000 + settleMs + 1).claim)).toEqual([2, 3]);
  });

  test("R31: a lane that was just taken over is not moved on before it has run for a moment", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    for (const lane of [0, 1]) claim(lane, 0, { owner: "a" });
    for (const lane of [2, 3]) claim(lane, 0, { owner: "dead" });
    for (const lane of [2, 3]) claim(lane, 5_000, { owner: "a" });
    member("b", 1_000);
    member("b", 5_000);
    expect(view.plan("a", "i", 5_000 + settleMs - 1).giveBack).toEqual([]);
    // Its owner's later writes do not begin that anew.
    for (const lane of [2, 3]) claim(lane, 5_500, { owner: "a", nonce: "rewound" });
    expect(lanesOf(view.plan("a", "i", 5_000 + settleMs).giveBack)).toEqual([2, 3]);
  });

  test("R31: a free lane is left to members that come, but not for longer than a lease", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    for (const lane of [0, 1]) claim(lane, 0, { owner: "a" });
    for (const lane of [2, 3]) claim(lane, 5_000);
    for (let now = 5_000; now < 5_000 + leaseMs; now += 500) {
      // Each dies as soon as it has come.
      member(`new-${now}`, now);
      expect(view.plan("a", "i", now + 1).claim).toEqual([]);
    }
    expect(lanesOf(view.plan("a", "i", 5_000 + leaseMs).claim)).toEqual([2, 3]);
  });

  test("a claim that names this member is listed, known or not", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    claim(2, 0, { owner: "a" });
    expect(view.plan("a", "i", 0).mine).toEqual([2]);
  });
});

describe("who may be dead", () => {
  test("O6: one whose record was seen unchanged for its whole lease; every beat starts that anew", () => {
    const { view, member } = scene();
    for (const id of ["a", "b"]) member(id, 0);
    member("b", 1_000);
    expect(view.deathCandidates("a", 1_000 + leaseMs - 1)).toEqual([]);
    expect(view.deathCandidates("a", 1_000 + leaseMs)).toMatchObject([{ id: "b", revision: 3 }]);
  });

  test("a revision that is told again, or an older one, changes nothing", () => {
    const { view } = scene();
    const record = formatMember({ version: 1, name: "b", leaseMs, beat: 1, status: "live" });
    view.member("b", 5, record, 0);
    expect(view.member("b", 5, record, 3_000)).toBe(false);
    expect(view.member("b", 4, record, 3_000)).toBe(false);
    expect(view.deathCandidates("a", leaseMs)).toMatchObject([{ id: "b", revision: 5 }]);
  });

  test("an owner that is named by a claim and has no record, after the lease that the claim names", () => {
    const { view, member, claim } = scene();
    member("a", 0);
    claim(0, 0, { owner: "gone", leaseMs: 1_000 });
    expect(view.deathCandidates("a", 0)).toEqual([]);
    expect(view.deathCandidates("a", 1_000)).toEqual([{ id: "gone", revision: 0, record: undefined }]);
    member("gone", 1_000);
    expect(view.deathCandidates("a", 1_001)).toEqual([]);
  });

  test("the dead are not called dead twice, nobody itself; what cannot be read is dead in time", () => {
    const { view, member } = scene();
    member("a", 0);
    member("b", 0, "dead");
    member("c", 0, "returned");
    view.member("d", 9, "no record", 0);
    expect(view.deathCandidates("a", 29_999)).toEqual([]);
    expect(view.deathCandidates("a", 30_000)).toMatchObject([{ id: "d" }]);
  });

  test("records of the dead are forgotten when no claim refers to them any more", () => {
    const { view, member, claim } = scene();
    for (const id of ["owner", "under", "suspect", "nobody"]) member(id, 0, "dead");
    claim(0, 0, { owner: "owner", diedUnder: "under", deaths: [{ member: "suspect", suspects: [1] }] });
    expect(view.forgotten(1_000, 999)).toEqual([]);
    expect(view.forgotten(1_000, 1_000)).toMatchObject([{ id: "nobody" }]);
  });
});
