import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Lanes, openLanes } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { openDatabase } from "@lanekeeper/examples/dist/customer-events/database.js";
import { CustomerProjection } from "@lanekeeper/examples/dist/customer-events/projection.js";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";

const EXAMPLES = fileURLToPath(new URL("../packages/examples/dist/", import.meta.url));
/** Only a fault takes that long, on however busy a machine. */
const DEADLINE_MS = 110_000;
vi.setConfig({ testTimeout: 120_000 });

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

test("publish-and-work handles both of a customer's events, in order", async () => {
  const example = start("publish-and-work.js");
  expect(await example.ended).toBe(0);
  expect(example.lines()).toEqual(["customer-42 ordered a kite", "customer-42 paid 1999 cents"]);
});

test("retries: a key's next event waits for the retries of the one before, and a terminal error is not retried", async () => {
  const example = start("retries.js");
  expect(await example.ended).toBe(0);
  const of = (word: string): string[] => example.lines().filter((line) => line.includes(word));
  expect(of("busy")).toEqual([
    "busy: attempt 1 at 100 cents",
    "busy: attempt 2 at 100 cents",
    "busy: paid 100 cents",
  ]);
  expect(of("flaky")).toEqual([
    "flaky: attempt 1 at 200 cents",
    "flaky: attempt 2 at 200 cents",
    "flaky: attempt 3 at 200 cents",
    "flaky: paid 200 cents",
    "flaky: attempt 1 at 300 cents",
    "flaky: attempt 2 at 300 cents",
    "flaky: attempt 3 at 300 cents",
    "flaky: paid 300 cents",
  ]);
  expect(of("wrong")).toEqual([
    "wrong: attempt 1 at -1 cents",
    expect.stringContaining("dropped an event of wrong"),
    "wrong: attempt 1 at 400 cents",
    "wrong: paid 400 cents",
  ]);
  expect(of("dropped")).toEqual([expect.stringContaining("an amount must be positive")]);
});

test("server-mapping: a plain publisher's events come lane by lane, each device's in order", async () => {
  const example = start("server-mapping.js");
  expect(await example.ended).toBe(0);
  const lines = example.lines();
  expect(lines).toHaveLength(9);
  for (const device of ["thermo-1", "thermo-2", "thermo-3"]) {
    const own = lines.filter((line) => line.includes(device));
    expect(new Set(own.map((line) => line.split(":")[0])).size).toBe(1);
    expect(own.map((line) => line.slice(line.indexOf(device)))).toEqual([
      `${device} online {"version":"1.4"}`,
      `${device} reading {"celsius":20.5}`,
      `${device} offline {}`,
    ]);
  }
});

test.each(["SIGTERM", "SIGINT"] as const)(
  "R36 graceful-shutdown: at %s it finishes the event in hand, and it ends with code 0",
  async (signal) => {
    const example = start("graceful-shutdown.js", [], { SEND_MS: "5000" });
    await example.printed("working");
    const to = `${signal.toLowerCase()}@example.org`;
    await publishMail(to);
    await example.printed(`sending "Hello" to ${to}`);
    example.child.kill(signal);
    expect(await example.ended).toBe(0);
    expect(example.lines()).toEqual([
      "working",
      `sending "Hello" to ${to}`,
      "stopping",
      `sent "Hello" to ${to}`,
      "stopped",
    ]);
    // Its ack arrived: nothing is left for whoever comes next.
    expect(await pendingMails()).toEqual({ pending: 0, inFlight: 0 });
  },
);

test("customer events: no rule is broken and none is missed, though a worker is killed midway", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-examples-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const database = join(folder, "customers.db");
  const workers = [1, 2, 3].map(() => start("customer-events/worker.js", [database], { LEASE_MS: "1500" }));
  await Promise.all(workers.map((worker) => worker.printed("working")));
  const publisher = start("customer-events/publisher.js", ["4000", "7"]);
  await projected(database, 100);
  workers[0]?.child.kill("SIGKILL");
  expect(await publisher.ended).toBe(0);
  const report = start("customer-events/report.js", [database]);
  expect(await report.ended).toBe(0);
  expect(report.lines()).toEqual([
    expect.stringMatching(/^\d+ customers, \d+ of them active$/),
    "4000 events, 0 of which broke a rule",
  ]);
  for (const worker of workers.slice(1)) {
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(worker.lines()).toEqual(["working", "closed"]);
  }
});

async function publishMail(to: string): Promise<void> {
  await withMails(async (lanes) => {
    await lanes.publisher().publish({ key: to, type: "requested", data: { subject: "Hello" } });
  });
}

function pendingMails(): Promise<{ pending: number; inFlight: number }> {
  return withMails(async (lanes) => {
    const { pending, inFlight } = await lanes.group("sender").status();
    return { pending, inFlight };
  });
}

async function withMails<T>(use: (lanes: Lanes<Record<string, unknown>>) => Promise<T>): Promise<T> {
  const connection = await connect({ servers: server.url });
  try {
    await using lanes = await openLanes(connection, { stream: "MAILS" });
    return await use(lanes);
  } finally {
    await connection.close();
  }
}

/** Resolves when that many events have been handled, at least. */
async function projected(file: string, events: number): Promise<void> {
  const database = openDatabase(file);
  try {
    const projection = new CustomerProjection(database);
    await vi.waitUntil(() => projection.totals().events >= events, { timeout: DEADLINE_MS, interval: 10 });
  } finally {
    database.close();
  }
}

interface Running {
  readonly child: ChildProcess;
  /** The exit code; rejects at the deadline, with what was written so far. */
  readonly ended: Promise<number | null>;
  lines(): string[];
  /** Resolves when such a line was written; rejects if the program ends without it, and at the deadline. */
  printed(line: string): Promise<void>;
}

function start(program: string, args: string[] = [], env: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, [join(EXAMPLES, program), ...args], {
    env: { ...process.env, NATS_URL: server.url, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const lines = (): string[] => stdout.split("\n").slice(0, -1);
  const failure = (what: string): Error => new Error(`${program} ${what}\n${stdout}\n${stderr}`);
  const ended = new Promise<number | null>((resolve, reject) => {
    const timer = setTimeout(() => reject(failure("did not end")), DEADLINE_MS);
    child.on("close", (code) => {
      clearTimeout(timer);
      if (code !== 0 && code !== null) console.error(failure(`ended with ${code}`).message);
      resolve(code);
    });
  });
  ended.catch(() => {});
  const printed = (line: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (lines().includes(line)) resolve();
      };
      child.stdout.on("data", look);
      void ended.then(() => reject(failure(`did not print "${line}"`)), reject);
      look();
    });
  return { child, ended, lines, printed };
}
