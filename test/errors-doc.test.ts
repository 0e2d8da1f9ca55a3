import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCodes } from "@lanekeeper/core";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const source = join(root, "packages", "core", "src");
const errors = readFileSync(join(root, "docs", "reference", "errors.md"), "utf8");
const notifications = readFileSync(join(root, "docs", "reference", "notifications.md"), "utf8");

/** The code of core without its tests, and without the file that lists the names. */
function sourceWithout(listing: string): string {
  return readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.includes(".test") && !path.endsWith(listing))
    .map((path) => readFileSync(join(source, path), "utf8"))
    .join("\n");
}

/** The first cells of a page's tables, their other cells with them. */
function rows(page: string): Map<string, string[]> {
  const found = [...page.matchAll(/^\| `([A-Za-z_-]+)` \|(.*)\|$/gm)];
  return new Map(
    found.map(([, name, rest]) => [name as string, (rest as string).split("|").map((cell) => cell.trim())]),
  );
}

test("docs/reference/errors.md and the exported codes are the same list, in the same order", () => {
  expect([...rows(errors).keys()]).toEqual([...errorCodes]);
});

test("every code says what happened, what to do, and who says so", () => {
  const thin = [...rows(errors)].filter(
    ([, cells]) => cells.length !== 3 || cells.some((cell) => cell.length < 4),
  );
  expect(thin).toEqual([]);
});

test("every code is used by the code", () => {
  const text = sourceWithout("error-code.ts");
  expect(errorCodes.filter((code) => !text.includes(`"${code}"`))).toEqual([]);
});

test("docs/reference/notifications.md and NotificationType are the same list", () => {
  expect([...rows(notifications).keys()].sort()).toEqual(notificationTypes().sort());
});

test("the notifications said to be sent are sent, the reserved ones are not", () => {
  const [sent = "", reserved = ""] = notifications.split("## Reserved");
  const text = sourceWithout("notification.ts");
  const isSent = (type: string) => text.includes(`"${type}"`);
  expect([...rows(sent).keys()].filter((type) => !isSent(type))).toEqual([]);
  expect([...rows(reserved).keys()].filter(isSent)).toEqual([]);
});

function notificationTypes(): string[] {
  const text = readFileSync(join(source, "domain", "notification.ts"), "utf8");
  const union = text.slice(text.indexOf("export type NotificationType"));
  return [...union.matchAll(/"([a-z-]+)"/g)].map(([, type]) => type as string);
}
