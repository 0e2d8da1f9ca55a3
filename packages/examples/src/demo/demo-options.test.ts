import { CommanderError } from "commander";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { parseDemoOptions } from "./demo-options.js";
import { InputError } from "./input-error.js";

let written = "";
beforeEach(() => {
  written = "";
  const write = (text: string | Uint8Array): boolean => {
    written += text;
    return true;
  };
  vi.spyOn(process.stdout, "write").mockImplementation(write);
  vi.spyOn(process.stderr, "write").mockImplementation(write);
});
afterEach(() => {
  vi.restoreAllMocks();
});

test("without options: generated events, all modes", () => {
  expect(parseDemoOptions([])).toEqual({
    events: 2_000,
    seed: 1,
    workers: 3,
    lanes: 64,
    modes: ["one-at-a-time", "unordered", "lanekeeper"],
    wait: { minMs: 2, maxMs: 8 },
    maxSeconds: 15,
  });
});

test("an input is read to its end unless --events limits it", () => {
  const input = ["--input", "a.ndjson", "--key", "id"];
  expect(parseDemoOptions(input)).toMatchObject({
    events: Number.POSITIVE_INFINITY,
    input: { path: "a.ndjson", fields: { key: "id" } },
  });
  expect(parseDemoOptions([...input, "--events", "5", "-o", "n", "-t", "kind"])).toMatchObject({
    events: 5,
    input: { fields: { key: "id", order: "n", type: "kind" } },
  });
});

test("modes run in their own order, each once", () => {
  expect(parseDemoOptions(["-m", "lanekeeper,unordered,lanekeeper"]).modes).toEqual([
    "unordered",
    "lanekeeper",
  ]);
});

test.each([
  [["--events", "none"], /whole number of at least 1/],
  [["--events", "0"], /whole number of at least 1/],
  [["--workers", "33"], /from 1 to 32/],
  [["--lanes", "1.5"], /from 1 to 1024/],
  [["--modes", "fast"], /"fast" is none of one-at-a-time, unordered, lanekeeper/],
  [["--wait", "8-2"], /lower one first/],
  [["--seed", "-1"], /whole number/],
  [["--max-seconds", "0"], /from 1 to 86400/],
  [["--speed"], /unknown option '--speed'/],
  [["events.ndjson"], /too many arguments/],
  [["--input"], /argument missing/],
])("%j is refused with a message and a way to help", (args, message) => {
  expect(() => parseDemoOptions(args)).toThrow(CommanderError);
  expect(written).toMatch(message);
  expect(written).toContain("npm run demo -- --help");
});

test.each([
  [["--input", "-"], /--input also needs --key/],
  [["--key", "id"], /--key says how to read an --input/],
  [["--order", "n"], /--order says how to read an --input/],
  [["--type", "kind"], /--type says how to read an --input/],
])("%j: options that do not go together are refused", (args, message) => {
  expect(() => parseDemoOptions(args)).toThrow(InputError);
  expect(() => parseDemoOptions(args)).toThrow(message);
});

test("--help names every option and the exit codes", () => {
  expect(() => parseDemoOptions(["--help"])).toThrow(expect.objectContaining({ exitCode: 0 }));
  for (const word of [
    ...["--input", "--key", "--order", "--type", "--events", "--modes", "--workers", "--lanes"],
    ...["--wait", "--seed", "--max-seconds", "--help", "Exit codes", "NO_COLOR"],
  ]) {
    expect(written).toContain(word);
  }
});
