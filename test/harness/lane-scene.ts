import { type CreateLanes, type Lanes, openLanes } from "@lanekeeper/core";
import { startTestServer, type TestServer, type TestServerOptions } from "@lanekeeper/core/testing";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type AwaitConditionOptions, awaitCondition } from "./await-condition.js";
import { type CheckAllResult, checkAll } from "./checkers/check-all.js";
import { settlementsByGroup } from "./checkers/settlements.js";
import type { SharedHoles } from "./checkers/shared-holes.js";
import type { ChildProgram } from "./child-program.js";
import { type History, startHistory } from "./history.js";
import type { HistoryRecord, StoredEvent } from "./history-record.js";
import { OwnedResources } from "./owned-resources.js";
import type { PublisherProgramOptions, WorkerProgramOptions } from "./program-options.js";
import { type PublisherProcess, startPublisherProcess } from "./publisher-process.js";
import { readStoredEvents } from "./stored-events.js";
import { startWorkerProcess, type WorkerProcess } from "./worker-process.js";

export const SCENE_GROUP = "audit";
export const SCENE_STREAM = "ORDERS";

export interface LaneSceneOptions {
  server?: TestServerOptions;
  /** Default: 16 lanes under `orders`. */
  create?: CreateLanes;
  /** Of every worker, and what the checker takes as the limit of the stated overlap. */
  ackWaitMs: number;
  /** Options of every worker, below its own. Default: assignment `shared`. */
  work?: Partial<WorkerProgramOptions["work"]>;
  /** The limit of the stated overlap where it is not ackWaitMs: for owned lanes, the lease. */
  overlapAfterMs?: number;
}

/**
 * Shared lanes only: owners rewind theirs. A single server writes its consumers' state about ten times a second, and later
 * than that where the machine is busy with other tests. So much of it is taken to be gone when it is killed.
 */
const SHARED_HOLES: SharedHoles = { forgottenMs: 2_000, underWayMs: 500 };

type Placement = {
  name: string;
  /** Instead of the server's own URLs: a proxy's, for example. */
  servers?: string | string[];
};
type SceneWorkerOptions = Placement &
  Pick<WorkerProgramOptions, "handler" | "keep" | "graceMs"> & {
    work?: Partial<WorkerProgramOptions["work"]>;
  };
type ScenePublisherOptions = Placement & Pick<PublisherProgramOptions, "publisher" | "events" | "perSecond">;

/** A server, a stream with lanes, worker and publisher processes of one group, and their common history. */
export interface LaneScene extends AsyncDisposable {
  readonly server: TestServer;
  readonly history: History;
  /** The test's own, for looking at the stream. */
  readonly lanes: Lanes<Record<string, unknown>>;
  readonly connection: NatsConnection;
  /** Group `SCENE_GROUP`, the scene's ack wait and `work`; its own `work` adds to that. */
  worker(options: SceneWorkerOptions): Promise<WorkerProcess>;
  publisher(options: ScenePublisherOptions): Promise<PublisherProcess>;
  stored(): Promise<StoredEvent[]>;
  /**
   * Asks until the answer is yes, as `awaitCondition` does.
   * @throws Error after `timeoutMs` (20,000), and at once with its output when a process of the scene has failed.
   */
  until<T>(
    ask: () => Promise<T> | T,
    options: AwaitConditionOptions,
  ): Promise<Exclude<T, undefined | null | false>>;
  /** Waits for a record, and returns the first that matches. @throws Error as `until` does. */
  seen<R extends HistoryRecord>(
    what: string,
    match: (record: HistoryRecord) => record is R,
    timeoutMs?: number,
  ): Promise<R>;
  /** Waits until that many events are handled, dropped or parked. @throws Error as `until` does. */
  settled(count: number, timeoutMs: number): Promise<void>;
  /** All checkers over all processes' histories and what is stored. */
  check(): Promise<CheckAllResult>;
}

export async function startLaneScene(options: LaneSceneOptions): Promise<LaneScene> {
  const owned = new OwnedResources();
  try {
    return await buildScene(owned, options);
  } catch (error) {
    await owned[Symbol.asyncDispose]();
    throw error;
  }
}

async function buildScene(owned: OwnedResources, options: LaneSceneOptions): Promise<LaneScene> {
  const server = owned.own(await startTestServer(options.server ?? {}));
  const history = owned.own(startHistory());
  const connection = await connect({
    servers: [...server.urls],
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
  });
  owned.defer(() => connection.close());
  const create = { lanes: 16, subject: "orders", ...options.create };
  const lanes = owned.own(await openLanes(connection, { stream: SCENE_STREAM, create }));
  const placed = ({ name, servers }: Placement) => ({
    name,
    servers: servers ?? [...server.urls],
    stream: SCENE_STREAM,
  });
  const stored = (): Promise<StoredEvent[]> => readStoredEvents(connection, SCENE_STREAM, lanes.layout);
  const children: ChildProgram[] = [];
  const adopt = <C extends ChildProgram>(child: C): C => {
    children.push(child);
    return owned.own(child);
  };
  const until: LaneScene["until"] = (ask, waiting) =>
    awaitCondition(() => {
      for (const child of children) {
        const failure = child.failure();
        if (failure !== undefined) throw failure;
      }
      return ask();
    }, waiting);
  return {
    until,
    server,
    history,
    lanes,
    connection,
    stored,
    async worker({ name, servers, work, ...rest }) {
      const { ackWaitMs } = options;
      const placement = placed(servers === undefined ? { name } : { name, servers });
      const whole = {
        group: SCENE_GROUP,
        assignment: "shared" as const,
        ackWaitMs,
        ...options.work,
        ...work,
      };
      // Owned workers make their bucket; whoever comes first does.
      const making = whole.assignment === "owned" ? { create } : {};
      return adopt(await startWorkerProcess(history, { ...placement, ...making, ...rest, work: whole }));
    },
    async publisher({ name, servers, ...rest }) {
      const placement = placed(servers === undefined ? { name } : { name, servers });
      return adopt(await startPublisherProcess(history, { ...placement, ...rest }));
    },
    async seen(what, match, timeoutMs) {
      return await until(() => history.read().find(match), {
        what,
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      });
    },
    async settled(count, timeoutMs) {
      const settledNow = (): number => settlementsByGroup(history.read()).get(SCENE_GROUP)?.size ?? 0;
      await until(() => settledNow() >= count, {
        timeoutMs,
        everyMs: 200,
        what: () => `${count} events to be settled (so far ${settledNow()})`,
      });
    },
    async check() {
      return checkAll(history.read(), await stored(), {
        groups: [SCENE_GROUP],
        ackWaitMs: options.overlapAfterMs ?? options.ackWaitMs,
        ...(options.work?.assignment === "owned" ? {} : { shared: SHARED_HOLES }),
      });
    },
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}
