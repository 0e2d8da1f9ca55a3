import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LanekeeperError, openLanes } from "@lanekeeper/core";
import { findServerBinary } from "@lanekeeper/core/testing";
import { encodeKey, type LaneLayout, laneOf, layoutConfig } from "@lanekeeper/partitioner";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { awaitCondition, within } from "./harness/await-condition.js";
import { guardChild } from "./harness/child-guard.js";
import { OwnedResources } from "./harness/owned-resources.js";

const CONF = fileURLToPath(new URL("../nats-server.conf", import.meta.url));
const LAYOUT: LaneLayout = {
  subject: "orders",
  generation: 1,
  lanes: 64,
  hash: "fnv1a",
  mapping: "account",
};

test("nats-server.conf maps exactly as layoutConfig says, and names the layout it does so for", () => {
  const text = readFileSync(CONF, "utf8");
  const block = /^mappings \{\n([^}]*(?:\}\}[^}]*)*)\n\}$/m.exec(text)?.[1] ?? "";
  const lines = [...block.matchAll(/^ *"([^"]+)": "([^"]+)"$/gm)].map(([, src, dest]) => ({ src, dest }));
  expect(lines).toEqual([layoutConfig(LAYOUT).transform]);
  const named = /\{ (subject: "orders", .*) \}$/m.exec(text)?.[1];
  expect(named).toBe(
    Object.entries(LAYOUT)
      .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
      .join(", "),
  );
  // The prose above the block says which number is to be changed.
  expect(text).toContain(`change the ${LAYOUT.lanes} here`);
});

describe("a server that runs on nats-server.conf", () => {
  let resources: OwnedResources;
  let url: string;

  beforeAll(async () => {
    resources = new OwnedResources();
    url = await startOnConf(resources);
  });
  afterAll(() => resources[Symbol.asyncDispose]());

  test("R01, R02: events published to the intake by plain NATS come to the lane of their key", async () => {
    await using opened = await openOrders(url);
    const js = jetstream(opened.connection);
    const keys = ["a", "customer-42", "Ada Lovelace", "løp", "日本", "a.b", "*", ">", "100%"];
    for (const key of keys) {
      const ack = await js.publish(`in.orders.${encodeKey(key)}.created`, "{}");
      expect(ack.stream).toBe("ORDERS");
      const stored = await opened.manager.streams.getMessage("ORDERS", { seq: ack.seq });
      expect(stored?.subject).toBe(`orders.${laneOf(key, 64, "fnv1a")}.${encodeKey(key)}.created`);
    }
  });

  test("O1, P1: 200 keys are published and worked in order, side by side", async () => {
    await using opened = await openOrders(url);
    const { lanes } = opened;
    expect(lanes.layout).toMatchObject({ ...LAYOUT, intake: "in.orders.{key}.*" });
    await using publisher = lanes.publisher();
    const keys = Array.from({ length: 200 }, (_, n) => `customer ${n}`);
    const calls = [1, 2, 3].flatMap((n) =>
      keys.map((key) => publisher.publish({ key, type: "changed", data: n })),
    );
    for (const [n, receipt] of (await Promise.all(calls)).entries()) {
      expect(receipt).toMatchObject({ lane: laneOf(keys[n % 200] ?? "", 64, "fnv1a"), duplicate: false });
    }
    const handled = new Map<string, number[]>();
    // The first handler ends when another one has begun beside it, which only another lane can bring.
    let running = 0;
    let overlapped = () => {};
    const sideBySide = new Promise<void>((resolve) => {
      overlapped = resolve;
    });
    await using worker = await lanes.work({ group: "billing" }, async (event) => {
      if (++running > 1) overlapped();
      await within(sideBySide, 20_000, "a handler beside the first");
      handled.set(event.key, [...(handled.get(event.key) ?? []), event.data as number]);
      running--;
    });
    await lanes.group("billing").caughtUp({ signal: AbortSignal.timeout(30_000) });
    await worker.close();
    expect([...handled.keys()].sort()).toEqual([...keys].sort());
    // A worker that stands still may handle events again (O4): what counts is when each came first (O1).
    for (const key of keys) expect([...new Set(handled.get(key))], key).toEqual([1, 2, 3]);
  });

  test("R42: a layout whose lane count is not the file's is refused before anything is stored", async () => {
    await using opened = await openOrders(url, 32);
    await using publisher = opened.lanes.publisher();
    const refused = await publisher.publish({ key: "a", type: "created", data: 1 }).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(LanekeeperError.is(refused) && refused.code).toBe("MAPPING_DIFFERS");
    const { state } = await opened.manager.streams.info("ORDERS");
    expect(state.last_seq).toBe(0);
  });
});

/** An empty stream with lanes for the intake of nats-server.conf. */
async function openOrders(url: string, lanes?: number) {
  const connection = await connect({ servers: url });
  try {
    const manager = await jetstreamManager(connection);
    for await (const { config } of manager.streams.list()) await manager.streams.delete(config.name);
    const create = {
      subject: "orders",
      mapping: "account" as const,
      ...(lanes === undefined ? {} : { lanes }),
    };
    const opened = await openLanes(connection, { stream: "ORDERS", create });
    return {
      connection,
      manager,
      lanes: opened,
      async [Symbol.asyncDispose]() {
        await opened.close();
        await connection.close();
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/**
 * Starts a server on the file itself. Only its ports are replaced, on the command line; the store is relative in the
 * file, and so is in the temporary folder in which the server is started.
 *
 * @returns its URL, once JetStream answers
 */
async function startOnConf(resources: OwnedResources): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-conf-"));
  resources.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const binary = await findServerBinary();
  const args = ["-c", CONF, "-a", "127.0.0.1", "-p", "-1", "-m", "-1", "--ports_file_dir", folder];
  const child = spawn(binary.path, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-4_000);
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  if (child.pid === undefined) throw new Error(`${binary.path} could not be started`);
  const standDown = guardChild(child.pid);
  void ended.then(standDown);
  resources.defer(async () => {
    child.kill("SIGKILL");
    await within(ended, 10_000, "nats-server to end");
  });
  const what = () => `nats-server to start; its log ends with:\n${log}`;
  const url = await awaitCondition(() => clientUrl(folder, child, what), { what });
  await awaitCondition(() => jetStreamAnswers(url), { what: () => `JetStream to answer; ${what()}` });
  expect(readdirSync(folder)).toContain("nats-data");
  return url;
}

/** From the file in which the server says which ports it took. */
function clientUrl(folder: string, child: ChildProcess, what: () => string): string | undefined {
  if (child.exitCode !== null) throw new Error(`ended instead of starting: ${what()}`);
  const file = readdirSync(folder).find((name) => name.endsWith(".ports"));
  if (file === undefined) return undefined;
  try {
    const ports: { nats?: string[] } = JSON.parse(readFileSync(join(folder, file), "utf8"));
    return ports.nats?.[0];
  } catch {
    return undefined; // Half written.
  }
}

async function jetStreamAnswers(url: string): Promise<boolean> {
  let connection: NatsConnection | undefined;
  try {
    connection = await connect({ servers: url, reconnect: false });
    await (await jetstreamManager(connection)).getAccountInfo();
    return true;
  } catch {
    return false;
  } finally {
    await connection?.close();
  }
}
