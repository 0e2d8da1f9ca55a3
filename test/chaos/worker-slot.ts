import type { LaneScene } from "../harness/lane-scene.js";
import { type NatsProxy, startNatsProxy } from "../harness/nats-proxy.js";
import type { WorkerProcess } from "../harness/worker-process.js";

const MAX_STARTS = 10;

/** A place for one worker, with a proxy of its own before every node; when the process dies another one is started. */
export class WorkerSlot implements AsyncDisposable {
  readonly name: string;
  readonly #scene: LaneScene;
  readonly #proxies: readonly NatsProxy[];
  #process: WorkerProcess | undefined;
  /** While a fault is under way here no other one begins. */
  busy = false;

  private constructor(name: string, scene: LaneScene, proxies: readonly NatsProxy[]) {
    this.name = name;
    this.#scene = scene;
    this.#proxies = proxies;
  }

  static async open(name: string, scene: LaneScene): Promise<WorkerSlot> {
    const proxies = await Promise.all(scene.server.urls.map((url) => startNatsProxy(url)));
    return new WorkerSlot(name, scene, proxies);
  }

  get process(): WorkerProcess {
    if (this.#process === undefined) throw new Error(`${this.name} has no process yet`);
    return this.#process;
  }

  /** As a supervisor does: a start that fails, because nobody answers during an election, is tried again. */
  async start(): Promise<void> {
    for (let attempt = 1; this.#process === undefined; attempt++) {
      try {
        this.#process = await this.#scene.worker({
          name: this.name,
          servers: this.#proxies.map(({ url }) => url),
          handler: [{ act: { type: "succeed", afterMs: 5, heedsSignal: true } }],
        });
      } catch (error) {
        if (attempt === MAX_STARTS) throw error;
      }
    }
  }

  async kill(): Promise<void> {
    await this.process.kill();
    this.#process = undefined;
  }

  cut(): void {
    for (const proxy of this.#proxies) proxy.cut();
  }

  blackhole(): void {
    for (const proxy of this.#proxies) proxy.blackhole();
  }

  delay(direction: "to-server" | "to-client", delayMs: number): void {
    for (const proxy of this.#proxies) proxy.delay(direction, delayMs);
  }

  heal(): void {
    for (const proxy of this.#proxies) {
      proxy.restore();
      proxy.delay("to-server", 0);
      proxy.delay("to-client", 0);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
  }
}
