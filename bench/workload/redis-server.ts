import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";

const VERSION_MS = 5_000;
const READY_MS = 20_000;

/** A redis-server of our own, with an append-only file as groupmq's and JetStream's durability ask for. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
}

/** The redis-server named by REDIS_SERVER_BIN, or on the PATH; undefined when there is none. Nothing is installed. */
export async function findRedis(): Promise<{ path: string; version: string } | undefined> {
  const path = process.env["REDIS_SERVER_BIN"] ?? "redis-server";
  try {
    const { stdout } = await promisify(execFile)(path, ["--version"], { timeout: VERSION_MS });
    return { path, version: /v=(\S+)/.exec(stdout)?.[1] ?? "unknown" };
  } catch {
    return undefined;
  }
}

export async function startRedis(path: string): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-redis-"));
  const port = await freePort();
  const settings = [
    "--bind",
    "127.0.0.1",
    "--port",
    String(port),
    "--dir",
    folder,
    "--save",
    "",
    "--appendonly",
    "yes",
  ];
  const child = spawn(path, settings, { stdio: "ignore" });
  const gone = once(child, "exit");
  gone.catch(() => {});
  const dispose = async () => {
    if (child.exitCode === null && child.kill("SIGKILL")) await gone.catch(() => {});
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  process.once("exit", () => child.kill("SIGKILL"));
  try {
    const url = `redis://127.0.0.1:${port}`;
    await answers(url);
    if (child.pid === undefined) throw new Error(`${path} cannot be run`);
    return { url, pid: child.pid, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function answers(url: string): Promise<void> {
  const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  redis.on("error", () => {}); // Until it is up, connections are refused; what counts is the deadline.
  try {
    await Promise.race([
      redis.ping(),
      once(AbortSignal.timeout(READY_MS), "abort").then(() => {
        throw new Error(`redis-server did not answer within ${READY_MS} ms`);
      }),
    ]);
  } finally {
    redis.disconnect();
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address !== "object" || address === null) throw new Error("no free port was found");
  return address.port;
}
