import { expect, test } from "vitest";
import { formatMember, type MemberRecord, parseMember } from "./member-record.js";

const record: MemberRecord = { version: 1, name: "w", leaseMs: 5_000, beat: 7, status: "live" };

test("a record comes back as it was written", () => {
  expect(parseMember(formatMember(record))).toEqual(record);
});

test.each(["", "no json", "[]", "null", "7", "{}", '{"version":1,"name":"w","leaseMs":1,"status":"odd"}'])(
  "what cannot be read (%s) is nobody's record, and breaks nothing",
  (text) => {
    expect(parseMember(text)).toBeUndefined();
  },
);

test("fields of a newer build are left out, and its record is still a member's", () => {
  expect(parseMember(JSON.stringify({ ...record, version: 2, zone: "a" }))).toEqual({
    ...record,
    version: 2,
  });
});
