import { expect, test } from "vitest";
import { compareVersions, isSupported, lineOf, matchesVersion } from "./server-version.js";

test("2.10 and later are supported, by number and not by text", () => {
  expect(["2.9.10", "2.9.99", "1.99.0", "0.10.0"].filter(isSupported)).toEqual([]);
  expect(["2.10.0", "2.10.27", "2.15.1", "3.0.0", "2.10.0-RC.1"].filter(isSupported)).toHaveLength(5);
});

test("a line stands for all its versions, a version for itself", () => {
  expect(matchesVersion("2.10.27", "2.10")).toBe(true);
  expect(matchesVersion("2.1.0", "2.10")).toBe(false);
  expect(matchesVersion("2.10.27", "2.1")).toBe(false);
  expect(matchesVersion("2.10.27", "2.10.27")).toBe(true);
  expect(matchesVersion("2.10.27", "2.10.2")).toBe(false);
});

test("versions are ordered by their numbers", () => {
  expect(["2.15.1", "2.9.10", "2.10.27", "2.10.3"].sort(compareVersions)).toEqual([
    "2.9.10",
    "2.10.3",
    "2.10.27",
    "2.15.1",
  ]);
  expect(lineOf("2.15.1")).toBe("2.15");
});
