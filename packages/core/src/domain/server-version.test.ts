import { expect, test } from "vitest";
import { versionAtLeast } from "./server-version.js";

test.each([
  ["2.10.0", "2.10.0", true],
  ["2.10.27", "2.10.0", true],
  ["2.9.25", "2.10.0", false],
  ["2.15.1", "2.10", true],
  ["3.0", "2.10.0", true],
  ["v2.12.0-RC.3", "2.12.0", true],
  ["2.10", "2.10.1", false],
  ["unknown", "2.10.0", false],
  ["", "2.10.0", false],
  ["2", "2.0", false],
])("%s is at least %s: %s", (version, minimum, expected) => {
  expect(versionAtLeast(version, minimum)).toBe(expected);
});
