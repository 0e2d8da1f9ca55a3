import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const BENCH = fileURLToPath(new URL("../bench/dist/main.js", import.meta.url));
const DEADLINE_MS = 240_000;

/** Sizes that are worth nothing as figures: only that everything runs, keeps order and reports is looked at. */
async function bench(name: string, ...more: string[]): Promise<{ rows: Row[]; skipped: string[] }> {
  const args = [BENCH, name, "--quick", "--json", "--shrink", "20", ...more];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    timeout: DEADLINE_MS,
    maxBuffer: 64 * 1_024 * 1_024,
    // A redis-server that happens to be here would be another thing to wait for.
    env: { ...process.env, REDIS_SERVER_BIN: "/nonexistent/redis-server" },
  });
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
}

type Row = Record<string, unknown>;

const rowShape = {
  name: expect.any(String),
  subject: expect.stringMatching(/./),
  msgsPerSecond: expect.any(Number),
  reference: expect.stringMatching(/./),
  referenceMsgsPerSecond: expect.any(Number),
  ratio: expect.any(Number),
  cpuMicrosPerMessage: expect.any(Number),
  orderFaults: 0,
  rounds: 3,
};

// Those that load both cores for long run by `npm run bench` only.
describe("the short benchmarks run, and Lanekeeper keeps order in them (O1 to O4, P1)", {
  timeout: DEADLINE_MS + 10_000,
}, () => {
  test.each([
    ["publish", 7],
    ["work", 6],
    ["latency", 4],
    ["micro", 4],
  ])("%s reports %i comparisons in its last line, without order faults", async (name, rows) => {
    const report = await bench(name);
    expect(report.rows).toHaveLength(rows);
    for (const row of report.rows) {
      expect(row).toMatchObject({ ...rowShape, name: expect.stringMatching(new RegExp(`^${name}, `)) });
      for (const rate of [row["msgsPerSecond"], row["referenceMsgsPerSecond"], row["ratio"]]) {
        expect(rate).toBeGreaterThan(0);
      }
    }
  });

  test("peers says that it was not run where there is no Redis server", async () => {
    const report = await bench("peers");
    expect(report.rows).toEqual([]);
    expect(report.skipped.join()).toMatch(/no redis-server/);
  });
});

describe("the command", { timeout: DEADLINE_MS + 10_000 }, () => {
  test("--only runs the cases whose name holds the text, in any case of letters, and says when there are none", async () => {
    const { rows } = await bench("micro", "--only", "KEY TO LANE");
    expect(rows.map(({ name }) => name)).toEqual([
      "micro, key to lane, 64 lanes",
      "micro, key to lane as the server, 64 lanes",
    ]);
    await expect(bench("all", "--only", "no such case")).rejects.toThrow(/no case .* has "no such case"/);
  });

  test("an unknown benchmark and too few rounds are refused", async () => {
    await expect(bench("speed")).rejects.toThrow(/no such benchmark/);
    await expect(bench("micro", "--rounds", "2")).rejects.toThrow(/whole number from 3/);
  });
});
