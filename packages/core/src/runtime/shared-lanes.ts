import { holdRules } from "../domain/hold.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { PullTrouble } from "../domain/pull-state.js";
import { pause } from "./clock.js";
import type { ConnectionPort } from "./connection-port.js";
import type { GroupConsumers, GroupWish, ReadyGroup } from "./group-consumers.js";
import { LaneRepair } from "./lane-repair.js";
import { LaneRunner } from "./lane-runner.js";
import type { LaneSet, WorkerHost } from "./lane-set.js";
import type { LanesContext } from "./lanes-context.js";
import { SharedPolicy } from "./shared-policy.js";
import type { StreamSnapshot } from "./stream-port.js";

export interface SharedLanesParts {
  readonly context: LanesContext;
  readonly consumers: GroupConsumers;
  readonly wish: GroupWish;
  readonly group: ReadyGroup;
  readonly created: string;
}

const verifyRetryMs = 300;

/** Every lane of the group, pulled beside all other workers; the server arbitrates. */
export class SharedLanes implements LaneSet {
  readonly runners: readonly LaneRunner[];
  readonly #host: WorkerHost;
  readonly #connection: ConnectionPort;
  readonly #repair: LaneRepair;
  readonly #byConsumer: ReadonlyMap<string, LaneRunner>;
  #serverId: string;
  readonly #stopObserving: () => void;
  /** Handlers that ran when the connection was lost. */
  #cutOff: { lane: number; key: string; seq: number; ended: () => boolean }[] = [];
  #verifying: Promise<void> | undefined;
  #verifyAgain = false;
  /** The server process is the one that the newest answers were sent to. */
  #sameServer = true;
  /** When the connection came back to a server process that was started anew, until that has been looked into. */
  #restartedAt: number | undefined;
  #ended = false;

  constructor(parts: SharedLanesParts, host: WorkerHost) {
    this.#host = host;
    const { group, context } = parts;
    this.#connection = context.connection;
    this.#serverId = context.connection.serverId;
    const policies = group.lanes.map(
      ({ ackWaitMs }) => new SharedPolicy(holdRules(ackWaitMs), () => host.proof()),
    );
    this.runners = policies.map(
      (policy, lane) => new LaneRunner(lane, policy, host, group.lanes[lane]?.name ?? ""),
    );
    this.#byConsumer = new Map(this.runners.map((runner) => [runner.consumer, runner]));
    this.#repair = new LaneRepair({
      ...parts,
      runners: this.runners,
      policies,
      health: host.health,
      notify: host.notify,
      fail: (error) => host.fail(error),
    });
    for (const { consumer } of this.runners) host.feed.add(consumer);
    this.#stopObserving = context.connection.observe(({ type }) => {
      if (type === "disconnected") this.#noteRunning();
    });
    // Now that this worker pulls, nobody lowers ackWait any more; what was lowered before is seen.
    this.#verify(true);
  }

  runnerOf(consumer: string): LaneRunner | undefined {
    return this.#byConsumer.get(consumer);
  }

  lanes(): number[] {
    return this.#ended ? [] : this.runners.map(({ lane }) => lane);
  }

  incarnation(): string {
    return this.#repair.group.incarnation;
  }

  trouble(runner: LaneRunner, kind: PullTrouble, text: string): void {
    this.#repair.trouble(runner, kind, text);
  }

  reconnected(): void {
    const { serverId, keepsConsumers } = this.#connection;
    const sameServer = serverId === this.#serverId;
    this.#serverId = serverId;
    if (!sameServer && keepsConsumers) {
      this.#restartedAt = this.#host.clock.now();
      // Consumer state younger than a tenth of a second is lost with a server that crashed.
      const text = "the server was started again and may have given the event to another worker";
      const error = new LanekeeperError("FENCED", text);
      for (const runner of this.runners) runner.tellOverlap(error);
      for (const { lane, key, seq, ended } of this.#cutOff) {
        if (ended()) this.#host.notify({ type: "overlap-possible", lane, key, seq, error });
      }
    }
    this.#cutOff = [];
    this.#verify(sameServer);
  }

  /** A handler that ends while the server is away may have run beside another's, too. */
  #noteRunning(): void {
    this.#cutOff = this.runners.flatMap((runner) =>
      [...runner.runs()].map((run) => ({
        lane: runner.lane,
        key: run.key,
        seq: run.seq,
        ended: () => ![...runner.runs()].includes(run),
      })),
    );
  }

  streamSeen(snapshot: StreamSnapshot): void {
    void this.#repair.streamSeen(snapshot);
  }

  tick(): void {
    // Runners tick by themselves; a shared lane has nothing else to keep alive.
  }

  async giveBack(drainMs: number): Promise<void> {
    // O3: an ack sent while pulls are open would bring the next event; so pulls end first, and acks go out after.
    for (const runner of this.runners) runner.beginDrain();
    await this.#host.feed.drain([...this.#byConsumer.keys()], drainMs);
    // What is given back to a consumer that is not known to be ours could be another's (O2).
    await this.#verifying;
    if (this.#ended) return;
    for (const runner of this.runners) runner.finishDrain();
    await Promise.all(this.runners.map((runner) => runner.ended()));
    // The connection may have been lost meanwhile, and answers kept back.
    await this.#verifying;
    await Promise.all(this.runners.map((runner) => runner.acksConfirmed()));
  }

  /** Nothing starts and nothing is answered until the consumers are known to be those of before. */
  #verify(sameServer: boolean): void {
    this.#sameServer = this.#sameServer && sameServer;
    for (const runner of this.runners) runner.holdBack();
    this.#host.slots.pause("verify");
    if (this.#verifying === undefined) this.#verifying = this.#untilVerified();
    else this.#verifyAgain = true;
  }

  /** Resolves when they are, or this has ended. */
  async #untilVerified(): Promise<void> {
    let verified = false;
    let remembered: ReadonlySet<LaneRunner> = new Set();
    while (!verified && !this.#ended) {
      this.#verifyAgain = false;
      try {
        remembered = await this.#repair.verify(this.#restartedAt);
        verified = !this.#verifyAgain;
      } catch {
        // Not to be told now: the connection or a leader is away, and says so by itself.
        await pause(this.#host.clock, verifyRetryMs);
      }
    }
    this.#verifying = undefined;
    this.#restartedAt = undefined;
    for (const runner of this.runners) runner.letGo(this.#sameServer || remembered.has(runner));
    this.#sameServer = true;
    this.#host.slots.resume("verify");
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#stopObserving();
    this.#repair.stop();
  }
}
