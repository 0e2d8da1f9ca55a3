import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { root } from "./run.mjs";

const SIMULATE = `
  import { parseSimulateOptions } from ${JSON.stringify(new URL("simulate-options.mjs", import.meta.url))};
  console.log(JSON.stringify(parseSimulateOptions(process.argv.slice(1))));
`;
const program = (path: string) => [fileURLToPath(new URL(path, root))];

/** What each command hands its arguments to, once everything is set up. */
const COMMANDS = [
  { name: "demo", node: program("packages/examples/dist/demo/main.js"), number: "--seed" },
  { name: "bench", node: program("bench/dist/main.js"), number: "--rounds" },
  { name: "chaos", node: program("test/dist/chaos/main.js"), number: "--minutes" },
  { name: "simulate", node: ["--input-type=module", "-e", SIMULATE, "--"], number: "--seeds" },
];

describe.each(COMMANDS)("npm run $name", ({ name, node, number }) => {
  const given = (...args: string[]) =>
    spawnSync(process.execPath, [...node, ...args], { encoding: "utf8", timeout: 50_000 });

  test("--help: its usage, and exit code 0", () => {
    const { status, stdout, stderr } = given("--help");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain(`Usage: npm run ${name} -- [options]`);
    expect(stdout).toContain(`${number} <`);
    // Nothing of the program's own insides.
    expect(stdout.length).toBeLessThan(5_000);
  });

  test.each([
    [["--no-such-option"], /^error: unknown option '--no-such-option'\n/],
    [
      [number, "few"],
      new RegExp(`^error: option '(-\\w, )?${number} <\\w+>' argument 'few' is invalid\\. It must be`),
    ],
  ])("%j: what is wrong, the way to the usage, and exit code 2", (args, message) => {
    const { status, stdout, stderr } = given(...args);
    expect(stderr).toMatch(message);
    expect(stderr).toContain(`npm run ${name} -- `);
    expect(stderr).not.toMatch(/^ +at /m);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  });
});

test("npm run simulate: ten thousand seeds from the first on, unless told otherwise", () => {
  const options = (...args: string[]) =>
    JSON.parse(
      spawnSync(process.execPath, ["--input-type=module", "-e", SIMULATE, "--", ...args], {
        encoding: "utf8",
      }).stdout,
    );
  expect(options()).toEqual({ seeds: 10_000, seed: 1 });
  expect(options("--seeds", "500", "--seed", "7001")).toEqual({ seeds: 500, seed: 7001 });
});
