import { once } from "node:events";
import { type AddressInfo, createServer, type Server, Socket } from "node:net";
import type { NatsFrame } from "./nats-frame.js";
import { type Direction, ProxyPipe } from "./proxy-pipe.js";
import { type Interception, type ProxyObserver, type ProxyRule, ProxyRuleBook } from "./proxy-rule.js";

/** Where a client stands in the proxy, for a rule's `match`. */
export interface ProxyConnection {
  /** From 1, in order of arrival. */
  readonly id: number;
  /** The `name` the client gave in its CONNECT; empty until then. */
  readonly clientName: string;
}

export interface NatsProxy extends AsyncDisposable {
  /** What a client connects to instead of the server. */
  readonly url: string;
  /** How many clients are connected now. */
  readonly connections: number;
  /** How many clients ever connected. */
  readonly accepted: number;
  /**
   * Watches, drops, delays or holds single commands; what goes on is always a valid stream. Of several rules that
   * would act on a command, the one added first does and the others do not see it; watching ones see all.
   */
  intercept(rule: ProxyRule): Interception;
  /** Tells of every command that is about to be passed on, in either direction, until it is disposed of. */
  observe(observer: ProxyObserver): Disposable;
  /** Nothing goes on in that direction (default both) until `resume`: the sender's own buffers fill up. */
  pause(direction?: Direction): void;
  resume(direction?: Direction): void;
  /** Everything in that direction arrives this much later, in order. 0 takes it back. */
  delay(direction: Direction, delayMs: number): void;
  /** Resets (RST) every connection, on both sides; clients may come back at once. */
  cut(): void;
  /** New connections are reset until `admit`; those that are open stay. */
  refuse(): void;
  admit(): void;
  /** Everything that is and will be connected stays open and silent, as behind a dropped route, until `restore`. */
  blackhole(): void;
  /** Resumes both directions. Connections that were accepted in the meantime go on as if nothing had been. */
  restore(): void;
}

/**
 * A TCP proxy in front of one nats-server, that understands the protocol well enough to lose a single message.
 *
 * It takes `connect_urls` out of the server's INFO, so that clients do not learn a way around it. In front of a
 * cluster, start one per node.
 *
 * @param target the server's URL, such as `nats://127.0.0.1:4222`. TLS is not supported.
 */
export async function startNatsProxy(target: string): Promise<NatsProxy> {
  const { hostname, port } = new URL(target);
  const proxy = new RunningProxy({ host: hostname, port: Number(port) });
  await proxy.listen();
  return proxy;
}

const LISTEN_TIMEOUT_MS = 10_000;

class RunningProxy implements NatsProxy {
  readonly #target: { host: string; port: number };
  readonly #server: Server;
  #port = 0;
  readonly #links = new Set<Link>();
  readonly #rules = new ProxyRuleBook();
  readonly #paused = new Set<Direction>();
  readonly #delays = new Map<Direction, number>();
  #refusing = false;
  #accepted = 0;

  constructor(target: { host: string; port: number }) {
    this.#target = target;
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client));
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening", { signal: AbortSignal.timeout(LISTEN_TIMEOUT_MS) });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  get connections(): number {
    return this.#links.size;
  }

  get accepted(): number {
    return this.#accepted;
  }

  intercept(rule: ProxyRule): Interception {
    return this.#rules.add(rule);
  }

  observe(observer: ProxyObserver): Disposable {
    return this.#rules.observe(observer);
  }

  pause(direction?: Direction): void {
    for (const each of directionsOf(direction)) {
      this.#paused.add(each);
      for (const link of this.#links) link.pipe(each).pause();
    }
  }

  resume(direction?: Direction): void {
    for (const each of directionsOf(direction)) {
      this.#paused.delete(each);
      for (const link of this.#links) link.pipe(each).resume();
    }
  }

  delay(direction: Direction, delayMs: number): void {
    this.#delays.set(direction, delayMs);
    for (const link of this.#links) link.pipe(direction).delay(delayMs);
  }

  cut(): void {
    for (const link of this.#links) link.reset();
  }

  refuse(): void {
    this.#refusing = true;
  }

  admit(): void {
    this.#refusing = false;
  }

  blackhole(): void {
    this.pause();
  }

  restore(): void {
    this.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#refusing = true;
    this.#rules.close();
    this.cut();
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  #accept(client: Socket): void {
    client.on("error", () => {}); // A reset shows as "close" as well.
    if (this.#refusing) {
      client.resetAndDestroy();
      return;
    }
    this.#accepted += 1;
    const link = new Link(this.#accepted, client, this.#target, this.#rules, () => this.#links.delete(link));
    this.#links.add(link);
    for (const direction of this.#paused) link.pipe(direction).pause();
    for (const [direction, delayMs] of this.#delays) link.pipe(direction).delay(delayMs);
  }
}

/** One client's connection and its own to the server. */
class Link implements ProxyConnection {
  readonly id: number;
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #toServer: ProxyPipe;
  readonly #toClient: ProxyPipe;
  readonly #onClosed: () => void;
  #clientName = "";

  constructor(
    id: number,
    client: Socket,
    target: { host: string; port: number },
    rules: ProxyRuleBook,
    onClosed: () => void,
  ) {
    this.id = id;
    this.#client = client;
    this.#upstream = new Socket();
    this.#onClosed = onClosed;
    const through = (direction: Direction) => (frame: NatsFrame) => rules.judge(direction, frame, this);
    const broken = () => this.reset();
    this.#toServer = new ProxyPipe({
      from: client,
      to: this.#upstream,
      rewrite: (frame) => this.#fromClient(frame),
      judge: through("to-server"),
      onBroken: broken,
    });
    this.#toClient = new ProxyPipe({
      from: this.#upstream,
      to: client,
      rewrite: withoutConnectUrls,
      judge: through("to-client"),
      onBroken: broken,
    });
    this.#upstream.on("error", () => this.reset());
    client.on("close", () => this.#closed());
    this.#upstream.on("close", () => this.#closed());
    this.#upstream.setNoDelay(true);
    this.#upstream.connect(target.port, target.host);
  }

  get clientName(): string {
    return this.#clientName;
  }

  pipe(direction: Direction): ProxyPipe {
    return direction === "to-server" ? this.#toServer : this.#toClient;
  }

  reset(): void {
    this.#toServer.close();
    this.#toClient.close();
    this.#client.resetAndDestroy();
    if (this.#upstream.connecting) this.#upstream.destroy();
    else this.#upstream.resetAndDestroy();
    this.#onClosed();
  }

  /** One side is gone: the other ends too, once it has been passed what was still under way. */
  #closed(): void {
    this.#toServer.end();
    this.#toClient.end();
    if (this.#client.closed && this.#upstream.closed) this.#onClosed();
  }

  #fromClient(frame: NatsFrame): NatsFrame {
    if (frame.op === "CONNECT") {
      const name: unknown = JSON.parse(frame.line.slice("CONNECT".length)).name;
      this.#clientName = typeof name === "string" ? name : "";
    }
    return frame;
  }
}

function directionsOf(direction: Direction | undefined): readonly Direction[] {
  return direction === undefined ? ["to-server", "to-client"] : [direction];
}

function withoutConnectUrls(frame: NatsFrame): NatsFrame {
  if (frame.op !== "INFO") return frame;
  const info = JSON.parse(frame.line.slice("INFO".length)) as Record<string, unknown>;
  if (!("connect_urls" in info) && !("ws_connect_urls" in info)) return frame;
  delete info["connect_urls"];
  delete info["ws_connect_urls"];
  const line = `INFO ${JSON.stringify(info)} `;
  return { ...frame, line, bytes: Buffer.from(`${line}\r\n`) };
}
