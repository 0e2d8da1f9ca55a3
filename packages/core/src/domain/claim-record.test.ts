import { expect, test } from "vitest";
import { type ClaimRecord, formatClaim, parseClaim } from "./claim-record.js";

const claim: ClaimRecord = {
  version: 1,
  incarnation: "i",
  owner: "m",
  leaseMs: 5_000,
  nonce: "n",
  epoch: 12,
  consumer: "lk-g-g1-0-e12",
  consumerEpoch: 12,
  startSeq: 4,
  progress: { top: 9, stamp: "99", open: [5, 7] },
  deaths: [{ member: "d", suspects: [5] }],
  testing: 5,
  poison: [3],
};

test("a claim comes back as it was written", () => {
  expect(parseClaim(formatClaim(claim))).toEqual(claim);
});

test("the record of a newer build is recognised, so that it is not touched", () => {
  expect(parseClaim(JSON.stringify({ version: 2, whatever: true }))).toBe("newer");
});

test.each(["", "{", "[]", "{}", '{"version":1}', '{"version":1,"incarnation":"i","nonce":"n","epoch":"1"}'])(
  "what cannot be read (%s) is no claim",
  (text) => {
    expect(parseClaim(text)).toBeUndefined();
  },
);
