import { rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { findServerBinary, versionOfNamed } from "./find-server.js";
import { jetStreamAnswers, stepDownLeader } from "./jetstream-probe.js";
import { type ConfigContext, layOut, type NodeLayout } from "./node-layout.js";
import { type ProcessGuard, startProcessGuard } from "./process-guard.js";
import { serverConfig } from "./server-config.js";
import { metaLeader } from "./server-health.js";
import { configFileOf, PortTakenError, ServerNode, type TestServerNode } from "./test-server-node.js";
import { waitUntil } from "./wait-until.js";

const READY_TIMEOUT_MS = 60_000;
const CLUSTER_READY_TIMEOUT_MS = 90_000;
const START_ATTEMPTS = 5;
/**
 * How long a cluster may take from when all its nodes run, at the first attempt; one that works needs a few seconds. Twice
 * as long at each further one: on a machine so slow that the first was not stuck, the next one is not ended too early as well.
 */
const STUCK_MS = 12_000;

export interface TestServerOptions {
  /** One server, or a cluster of three. Default 1. */
  nodes?: 1 | 3;
  /**
   * Server configuration appended to each node's own, for example a `mappings` block; a top-level setting given
   * here replaces ours. The function form is for what differs by node and for listeners that need a port.
   */
  config?: string | ((node: ConfigContext) => string);
  /** A nats-server to use as it is. Default: whatever `findServerBinary` finds. */
  binary?: string;
  /** The line, such as `"2.10"`, or full version to look for when `binary` is not given. Default: the newest. */
  version?: string;
  /** How to connect when `config` asks for credentials: for the readiness check and for `stepDown`. */
  connect?: Omit<NodeConnectionOptions, "servers">;
  /** How long a start or restart may take, in milliseconds. Default 60,000, with three nodes 90,000. */
  readyTimeoutMs?: number;
}

/** A running nats-server, or a cluster of three, with JetStream on and a store that goes when it is disposed of. */
export interface TestServer extends AsyncDisposable {
  /** The first node's URL; a client learns the other nodes from it. */
  readonly url: string;
  /** Every node's URL. */
  readonly urls: readonly string[];
  /** One or three. */
  readonly nodes: readonly TestServerNode[];
  /** Holds configuration, logs and stores; removed when the server is disposed of. */
  readonly folder: string;
  /** Path of the nats-server that runs. */
  readonly binary: string;
  /** Its version, for example `"2.15.1"`. */
  readonly version: string;
  /** `kill()` of every node. */
  kill(): Promise<void>;
  /** `stop()` of every node. */
  stop(): Promise<void>;
  /** `freeze()` of every node. */
  freeze(): void;
  /** `thaw()` of every node. */
  thaw(): void;
  /** Kills every node and starts all on the same ports and stores; resolves once JetStream answers. */
  restart(): Promise<void>;
  /**
   * Has the leader of a stream step down, and waits until another node leads it. For clusters.
   * @returns the new leader's name.
   */
  stepDown(stream: string): Promise<string>;
  /** The first node's `port(label)`. */
  port(label: string): number;
}

/**
 * Starts a nats-server on free ports of 127.0.0.1 with a temporary store.
 *
 * Resolves once JetStream answers; with three nodes, once the meta leader is elected, every node has caught up
 * and a stream with three replicas can be made. Disposing kills the nodes, frozen or not, and removes the store;
 * both also happen when this process ends in any other way.
 *
 * @throws LanekeeperError NATS_SERVER_NOT_FOUND, NATS_SERVER_TOO_OLD, or NATS_SERVER_FAILED with the end of the log.
 */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const binary = await chosenBinary(options);
  const deadlineAt = performance.now() + readyTimeoutOf(options);
  for (let attempt = 1; ; attempt++) {
    const server = await RunningServer.prepare(binary, options);
    try {
      await server.start(deadlineAt, attempt);
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      if (!(error instanceof PortTakenError || error instanceof ClusterStuckError)) throw error;
      if (attempt < START_ATTEMPTS && performance.now() < deadlineAt) continue;
      const message = `nats-server did not start in ${attempt} attempts. ${error.message}`;
      throw new LanekeeperError("NATS_SERVER_FAILED", message, { cause: error });
    }
  }
}

function readyTimeoutOf({ nodes, readyTimeoutMs }: TestServerOptions): number {
  return readyTimeoutMs ?? (nodes === 3 ? CLUSTER_READY_TIMEOUT_MS : READY_TIMEOUT_MS);
}

interface Binary {
  path: string;
  version: string;
}

async function chosenBinary(options: TestServerOptions): Promise<Binary> {
  const { binary, version } = options;
  if (binary !== undefined)
    return { path: binary, version: await versionOfNamed(binary, "the option binary") };
  return await findServerBinary(version === undefined ? {} : { version });
}

/**
 * All nodes run, but the cluster does not come to work. It happens with 2.10: nodes that dial each other close each
 * other's routes as duplicates, and now and then (4 of 55 starts of 2.10.27 on a busy machine) one misses for good
 * what another says of itself, so that the meta leader finds "no suitable peers". Starting again helps.
 */
class ClusterStuckError extends LanekeeperError {
  constructor(cause: Error) {
    super("NATS_SERVER_FAILED", cause.message, { cause });
  }
}

class RunningServer implements TestServer {
  readonly binary: string;
  readonly version: string;
  readonly nodes: readonly ServerNode[];
  readonly folder: string;
  readonly #guard: ProcessGuard;
  readonly #connect: Omit<NodeConnectionOptions, "servers">;
  readonly #readyTimeoutMs: number;

  /** Chooses ports and writes the configuration; starts nothing. */
  static async prepare(binary: Binary, options: TestServerOptions): Promise<RunningServer> {
    const folder = await mkdtemp(join(tmpdir(), "lanekeeper-nats-"));
    try {
      const names = options.nodes === 3 ? ["n1", "n2", "n3"] : ["n1"];
      const layout = await layOut(names, options.config);
      const clusterPorts = layout.map((node) => node.ports.cluster);
      for (const node of layout) {
        const text = serverConfig({ ...node, clusterPorts, storeDir: join(folder, node.name) });
        await writeFile(configFileOf(folder, node.name), text);
      }
      return new RunningServer(binary, folder, layout, options);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  private constructor(
    binary: Binary,
    folder: string,
    layout: readonly NodeLayout[],
    options: TestServerOptions,
  ) {
    this.binary = binary.path;
    this.version = binary.version;
    this.folder = folder;
    this.#connect = options.connect ?? {};
    this.#readyTimeoutMs = readyTimeoutOf(options);
    this.#guard = startProcessGuard(folder);
    const common = {
      binary: binary.path,
      folder,
      readyTimeoutMs: this.#readyTimeoutMs,
      hasQuorum: () => this.#hasQuorum(),
      onChange: () => this.#guard.watch(this.nodes.flatMap((node) => node.pid ?? [])),
    };
    this.nodes = layout.map((node) => new ServerNode({ ...common, ...node }));
  }

  get url(): string {
    return this.#first.url;
  }

  get urls(): readonly string[] {
    return this.nodes.map((node) => node.url);
  }

  /** @param attempt from 1 */
  async start(deadlineAt: number, attempt: number): Promise<void> {
    await this.#comeUp((node) => node.accepting(deadlineAt), deadlineAt, attempt);
  }

  async kill(): Promise<void> {
    await settleAll(this.nodes.map((node) => node.kill()));
  }

  async stop(): Promise<void> {
    await settleAll(this.nodes.map((node) => node.stop()));
  }

  freeze(): void {
    for (const node of this.nodes) node.freeze();
  }

  thaw(): void {
    for (const node of this.nodes) node.thaw();
  }

  async restart(): Promise<void> {
    const deadlineAt = performance.now() + this.#readyTimeoutMs;
    for (let attempt = 1; ; attempt++) {
      await this.kill();
      try {
        return await this.#comeUp((node) => node.startOnSamePorts(deadlineAt), deadlineAt, attempt);
      } catch (error) {
        const again = error instanceof ClusterStuckError || error instanceof PortTakenError;
        if (!again || performance.now() >= deadlineAt) throw error;
      }
    }
  }

  stepDown(stream: string): Promise<string> {
    return stepDownLeader({ ...this.#connect, servers: [...this.urls] }, stream, this.#readyTimeoutMs);
  }

  port(label: string): number {
    return this.#first.port(label);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.kill();
    } finally {
      this.#guard.release();
      // Synchronous: the folder must be gone when the test's own process ends right after.
      rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
    }
  }

  get #first(): ServerNode {
    const first = this.nodes[0];
    if (first === undefined) throw new Error("a test server has at least one node");
    return first;
  }

  #hasQuorum(): boolean {
    const running = this.nodes.filter((node) => node.state === "running").length;
    return running * 2 > this.nodes.length;
  }

  /**
   * Starts every node, one after the other, and resolves once JetStream answers.
   *
   * @throws ClusterStuckError when the nodes run and the cluster does not come to work within STUCK_MS, or a later attempt's.
   */
  async #comeUp(
    startNode: (node: ServerNode) => Promise<void>,
    deadlineAt: number,
    attempt: number,
  ): Promise<void> {
    for (const node of this.nodes) await startNode(node);
    if (this.nodes.length === 1) return await this.#ready(deadlineAt);
    const stuckAt = performance.now() + STUCK_MS * 2 ** (attempt - 1);
    try {
      await this.#ready(Math.min(deadlineAt, stuckAt));
    } catch (error) {
      const allRun = this.nodes.every((node) => node.state === "running");
      if (!allRun || performance.now() >= deadlineAt || !(error instanceof Error)) throw error;
      throw new ClusterStuckError(error);
    }
  }

  async #ready(deadlineAt: number): Promise<void> {
    await settleAll(this.nodes.map((node) => node.healthy(deadlineAt)));
    if (this.nodes.length > 1) await this.#metaLeaderAgreed(deadlineAt);
    const connection = { ...this.#connect, servers: [...this.urls] };
    const answer = await jetStreamAnswers(connection, this.nodes.length, deadlineAt);
    if (answer !== "yes") throw this.#first.notReady(`has no answering JetStream: ${answer}`);
  }

  /** One leader, known to all. */
  async #metaLeaderAgreed(deadlineAt: number): Promise<void> {
    const agreed = await waitUntil(async () => {
      const leaders = new Set(await Promise.all(this.nodes.map((node) => metaLeader(node.ports))));
      return leaders.size === 1 && !leaders.has(undefined) ? true : undefined;
    }, deadlineAt);
    if (agreed !== true) throw this.#first.notReady("and its cluster elected no meta leader");
  }
}

/** Waits for all before it throws the first failure: nothing may go on in the background after a start failed. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
