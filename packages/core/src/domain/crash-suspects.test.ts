import { describe, expect, test } from "vitest";
import type { ClaimRecord, DeathRecord } from "./claim-record.js";
import { cleared, crashLimit, recordDeath, suspectsOf } from "./crash-suspects.js";

const nobody = new Set<string>();
const death = (member: string, ...suspects: number[]): DeathRecord => ({ member, suspects });
const claim = (...deaths: DeathRecord[]): ClaimRecord => ({
  version: 1,
  incarnation: "i",
  nonce: "n",
  epoch: 1,
  consumerEpoch: 1,
  startSeq: 1,
  deaths,
});

describe("R26: which events may have killed their process", () => {
  test("only those that were in flight at the limit's number of deaths", () => {
    const deaths = Array.from({ length: crashLimit }, (_, n) => death(`m${n}`, 7, 100 + n));
    expect(suspectsOf(deaths, nobody)).toEqual([7]);
    expect(suspectsOf(deaths.slice(1), nobody)).toEqual([]);
  });

  test("a death with nothing in flight says nothing, and is not kept", () => {
    expect(recordDeath(claim(), "m", [])).toEqual([]);
  });

  test("a member that came back was frozen: its death does not count", () => {
    const deaths = ["a", "b", "c"].map((member) => death(member, 7));
    expect(suspectsOf(deaths, new Set(["b"]))).toEqual([]);
  });

  test("an event that was settled or found innocent is forgotten, the others are not", () => {
    const deaths = ["a", "b", "c"].map((member) => death(member, 7, 8));
    expect(suspectsOf(cleared(deaths, 7), nobody)).toEqual([8]);
    expect(cleared([death("a", 7)], 7)).toEqual([]);
  });

  test("the number of deaths remembered is bounded; the newest are", () => {
    let record = claim();
    for (let n = 0; n < 50; n++) record = claim(...recordDeath(record, `m${n}`, [n]));
    expect(record.deaths.length).toBeLessThanOrEqual(8);
    expect(record.deaths.at(-1)).toEqual(death("m49", 49));
  });
});
