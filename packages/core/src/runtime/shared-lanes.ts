import { holdRules } from "../domain/hold.js";
import type { PullTrouble } from "../domain/pull-state.js";
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

/** Every lane of the group, pulled beside all other workers; the server arbitrates. */
export class SharedLanes implements LaneSet {
  readonly runners: readonly LaneRunner[];
  readonly #host: WorkerHost;
  readonly #repair: LaneRepair;
  readonly #byConsumer: ReadonlyMap<string, LaneRunner>;
  #ended = false;

  constructor(parts: SharedLanesParts, host: WorkerHost) {
    this.#host = host;
    const { group } = parts;
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
    for (const runner of this.runners) runner.reconnected();
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
    if (this.#ended) return;
    for (const runner of this.runners) runner.finishDrain();
    await Promise.all(this.runners.map((runner) => runner.ended()));
    await Promise.all(this.runners.map((runner) => runner.acksConfirmed()));
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#repair.stop();
  }
}
