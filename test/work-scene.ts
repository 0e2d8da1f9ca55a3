import {
  type CreateLanes,
  type Handler,
  type Lanes,
  type LaneWorker,
  type Notification,
  type NotificationType,
  openLanes,
  type PublisherOptions,
  type WorkerOptions,
} from "@lanekeeper/core";
import type { TestServer } from "@lanekeeper/core/testing";
import { type ConsumerInfo, type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import { awaitCondition } from "./harness/await-condition.js";
import { checkAll } from "./harness/checkers/check-all.js";
import { expectNoFaults } from "./harness/checkers/fault.js";
import { type History, startHistory } from "./harness/history.js";
import { openHistoryRecorder } from "./harness/history-recorder.js";
import { notificationEntry } from "./harness/notification-entry.js";
import { OwnedResources } from "./harness/owned-resources.js";
import { readStoredEvents } from "./harness/stored-events.js";

export type AnyEvents = Record<string, unknown>;
export type AnyHandler = Handler<AnyEvents>;

export interface SceneOptions {
  /** Default: 4 lanes under a subject of the scene's own. */
  create?: Partial<CreateLanes>;
  connect?: NodeConnectionOptions;
  /** Of the scene's own publisher. */
  publisher?: PublisherOptions;
}

/** One handler run as the test saw it; times in milliseconds of `performance.now()`. */
export interface SeenRun {
  readonly worker: string;
  readonly key: string;
  readonly seq: number;
  readonly lane: number;
  readonly attempt: number;
  readonly data: unknown;
  readonly startedAt: number;
  endedAt?: number;
}

export interface SceneWorker {
  readonly worker: LaneWorker;
  readonly connection: NatsConnection;
  readonly lanes: Lanes<AnyEvents>;
  readonly notifications: Notification[];
  /** Waits for a notification of this type, and returns the first that matches. */
  told(
    type: NotificationType,
    match?: (notification: Notification) => boolean,
    timeoutMs?: number,
  ): Promise<Notification>;
}

export interface SceneWorkerOptions extends Partial<WorkerOptions<AnyEvents>> {
  /** Instead of the server's own, a proxy's. */
  servers?: string;
  connect?: NodeConnectionOptions;
}

/** A stream of its own on a server, with workers in this process on connections of their own, and one history. */
export interface Scene extends AsyncDisposable {
  readonly stream: string;
  readonly subject: string;
  readonly group: string;
  readonly connection: NatsConnection;
  readonly lanes: Lanes<AnyEvents>;
  readonly manager: JetStreamManager;
  readonly history: History;
  /** Every handler run, in order of start. */
  readonly runs: SeenRun[];
  worker(handler?: AnyHandler, options?: SceneWorkerOptions): Promise<SceneWorker>;
  /** Publishes one event after the other; each text is `key` or `key:type`. */
  publish(...events: string[]): Promise<number[]>;
  consumer(lane: number): Promise<ConsumerInfo>;
  /** Every lane's consumer. */
  consumers(): Promise<ConsumerInfo[]>;
  /** Waits until that many runs have ended. */
  ended(count: number, timeoutMs?: number): Promise<void>;
  /** O1 to O4 over everything the workers did; the stream must be at rest and keep its events. */
  expectNoFaults(ackWaitMs?: number): Promise<void>;
}

let scenes = 0;

export async function openScene(server: TestServer, options: SceneOptions = {}): Promise<Scene> {
  const owned = new OwnedResources();
  try {
    return await buildScene(owned, server, options);
  } catch (error) {
    await owned[Symbol.asyncDispose]();
    throw error;
  }
}

async function buildScene(owned: OwnedResources, server: TestServer, options: SceneOptions): Promise<Scene> {
  const number = ++scenes;
  const stream = `SCENE-${number}`;
  const subject = `scene${number}`;
  const group = "audit";
  const history = owned.own(startHistory());
  const runs: SeenRun[] = [];
  const client = async (more: NodeConnectionOptions = {}) => {
    const connection = await connect({
      servers: server.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      ...options.connect,
      ...more,
    });
    owned.defer(() => connection.close());
    return connection;
  };
  const connection = await client();
  const create: CreateLanes = { subject, lanes: 4, ...options.create };
  const lanes = owned.own(await openLanes(connection, { stream, create }));
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const publisher = lanes.publisher(options.publisher);
  const consumer = (lane: number) => manager.consumers.info(stream, `lk-${group}-g1-${lane}`);
  return {
    stream,
    subject,
    group,
    connection,
    lanes,
    manager,
    history,
    runs,
    consumer,
    consumers: () => Promise.all(Array.from({ length: lanes.layout.lanes }, (_, lane) => consumer(lane))),
    async worker(handler = () => {}, { servers, connect: more, ...work } = {}) {
      const own = await client({ ...(servers === undefined ? {} : { servers }), ...more });
      // Owned workers make their bucket; whoever comes first does.
      const opened = await openLanes(own, work.assignment === "owned" ? { stream, create } : { stream });
      const name = history.nameFor(work.name ?? "worker");
      const recorder = owned.own(openHistoryRecorder(history.folder, name));
      const notifications: Notification[] = [];
      let run = 0;
      const recorded: AnyHandler = async (event, context) => {
        const { key, seq, lane, attempt, data } = event;
        const about = { run: ++run, group: context.group, key, seq };
        const seen: SeenRun = {
          worker: name,
          key,
          seq,
          lane,
          attempt,
          data,
          startedAt: performance.now(),
        };
        runs.push(seen);
        recorder.record({ kind: "handler-start", lane, attempt, ...about });
        try {
          await handler(event, context);
        } catch (thrown) {
          seen.endedAt = performance.now();
          recorder.record({ kind: "handler-end", outcome: "failed", error: typeof thrown, ...about });
          throw thrown;
        }
        seen.endedAt = performance.now();
        recorder.record({ kind: "handler-end", outcome: "handled", ...about });
      };
      const worker = await opened.work(
        {
          group,
          assignment: "shared",
          ...work,
          name,
          onNotification: (notification) => {
            notifications.push(notification);
            recorder.record(notificationEntry(notification));
            work.onNotification?.(notification);
          },
        },
        recorded,
      );
      // A test that wants a graceful end closes the worker itself.
      owned.defer(() => worker.close({ graceMs: 200 }));
      return {
        worker,
        connection: own,
        lanes: opened,
        notifications,
        told: (type, match = () => true, timeoutMs = 20_000) =>
          awaitCondition(() => notifications.find((one) => one.type === type && match(one)), {
            what: () => `"${type}" to be told (told: ${notifications.map((one) => one.type).join(", ")})`,
            timeoutMs,
          }),
      };
    },
    async publish(...events) {
      const receipts = [];
      for (const [n, text] of events.entries()) {
        const [key = "", type = "created"] = text.split(":");
        receipts.push((await publisher.publish({ key, type, data: { n } })).seq);
      }
      return receipts;
    },
    async ended(count, timeoutMs = 20_000) {
      const ended = () => runs.filter((run) => run.endedAt !== undefined).length;
      await awaitCondition(() => ended() >= count, {
        what: () => `${count} runs to end (so far ${ended()} of ${runs.length})`,
        timeoutMs,
      });
    },
    async expectNoFaults(ackWaitMs = 30_000) {
      const stored = await readStoredEvents(connection, stream, lanes.layout);
      expectNoFaults(checkAll(history.read(), stored, { groups: [group], ackWaitMs }).faults);
    },
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** A promise and what settles it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
