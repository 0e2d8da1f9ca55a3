import { join } from "node:path";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { NodePorts } from "./server-config.js";
import { isHealthy, serverNameAt } from "./server-health.js";
import { type ProcessState, ServerProcess } from "./server-process.js";
import { waitUntil } from "./wait-until.js";

const ADDRESS_IN_USE = /address already in use/i;

/** A port was taken by somebody else between its choice and the server's start. */
export class PortTakenError extends LanekeeperError {
  constructor(message: string) {
    super("NATS_SERVER_FAILED", message);
  }
}

/** One node of a test server: what is asked of it here concerns this node only. */
export interface TestServerNode {
  /** `n1`, `n2`, `n3`: the server name, as in cluster information. */
  readonly name: string;
  /** `nats://127.0.0.1:PORT`; the same after a restart. */
  readonly url: string;
  readonly state: ProcessState;
  /** Of the running process; changes with a restart. */
  readonly pid: number | undefined;
  /** SIGKILL, as in a crash. Nothing happens to a node that is stopped. */
  kill(): Promise<void>;
  /** SIGTERM, the server's graceful stop; after 10 s SIGKILL. */
  stop(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers once this has returned. Throws when the node is stopped. */
  freeze(): void;
  /** SIGCONT. Throws when the node is stopped. */
  thaw(): void;
  /**
   * Kills the node if it runs and starts it on the same ports and store. Resolves once JetStream answers; where
   * most nodes of a cluster are stopped or frozen, and it therefore cannot, once clients are accepted.
   */
  restart(): Promise<void>;
  /** The port that `config` asked for under this label; throws when it asked for none. */
  port(label: string): number;
  /** Everything that this node's server has logged. */
  log(): string;
}

/** The node with what only its cluster may call. */
export class ServerNode implements TestServerNode {
  readonly name: string;
  readonly ports: NodePorts;
  readonly process: ServerProcess;
  readonly #labelled: ReadonlyMap<string, number>;
  readonly #readyTimeoutMs: number;
  readonly #hasQuorum: () => boolean;
  /** Length of the log when the present process started. */
  #logged = 0;

  constructor(options: {
    name: string;
    binary: string;
    folder: string;
    ports: NodePorts;
    labelled: ReadonlyMap<string, number>;
    readyTimeoutMs: number;
    hasQuorum: () => boolean;
    onChange: () => void;
  }) {
    this.name = options.name;
    this.ports = options.ports;
    this.#labelled = options.labelled;
    this.#readyTimeoutMs = options.readyTimeoutMs;
    this.#hasQuorum = options.hasQuorum;
    this.process = new ServerProcess({
      binary: options.binary,
      configFile: configFileOf(options.folder, options.name),
      logFile: join(options.folder, `${options.name}.log`),
      onChange: options.onChange,
    });
  }

  get url(): string {
    return `nats://127.0.0.1:${this.ports.client}`;
  }

  get state(): ProcessState {
    return this.process.state;
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  kill(): Promise<void> {
    return this.process.kill();
  }

  stop(): Promise<void> {
    return this.process.stop();
  }

  freeze(): void {
    this.process.freeze();
  }

  thaw(): void {
    this.process.thaw();
  }

  async restart(): Promise<void> {
    const deadlineAt = performance.now() + this.#readyTimeoutMs;
    await this.process.kill();
    await this.startOnSamePorts(deadlineAt);
    if (this.#hasQuorum()) await this.healthy(deadlineAt);
  }

  port(label: string): number {
    const port = this.#labelled.get(label);
    if (port === undefined)
      throw new Error(`the configuration of this test server asked for no port "${label}"`);
    return port;
  }

  log(): string {
    return this.process.log();
  }

  /** Starts the process; resolves once it accepts clients. Throws PortTakenError when one of its ports is taken. */
  async accepting(deadlineAt: number): Promise<void> {
    this.#logged = this.log().length;
    this.process.start();
    const accepted = await waitUntil(async () => {
      if (this.process.state === "stopped") return false;
      return (await serverNameAt(this.ports.client)) === this.name ? true : undefined;
    }, deadlineAt);
    if (accepted !== true) {
      throw this.notReady(accepted === false ? "ended while it started" : "did not accept clients in time");
    }
  }

  /** As `accepting`, but waits for its ports when somebody else holds one for a moment. */
  async startOnSamePorts(deadlineAt: number): Promise<void> {
    await waitUntil(
      async () => {
        try {
          await this.accepting(deadlineAt);
          return true;
        } catch (error) {
          if (!(error instanceof PortTakenError) || performance.now() >= deadlineAt) throw error;
          await this.process.kill();
          return undefined;
        }
      },
      deadlineAt,
      100,
    );
  }

  /** Resolves once the node says that JetStream works. */
  async healthy(deadlineAt: number): Promise<void> {
    const healthy = await waitUntil(async () => {
      if (this.process.state === "stopped") return false;
      return (await isHealthy(this.ports)) ? true : undefined;
    }, deadlineAt);
    if (healthy !== true)
      throw this.notReady(healthy === false ? "ended" : "has no working JetStream in time");
  }

  /** PortTakenError where that is why; it can also show after clients were accepted, by the other ports. */
  notReady(what: string): LanekeeperError {
    const message = `nats-server ${this.name} ${what}. Its log ends with:\n${this.process.logTail()}`;
    if (ADDRESS_IN_USE.test(this.log().slice(this.#logged))) return new PortTakenError(message);
    return new LanekeeperError("NATS_SERVER_FAILED", message);
  }
}

/** Where a node's configuration file is, in the folder of its server. */
export function configFileOf(folder: string, name: string): string {
  return join(folder, `${name}.conf`);
}
