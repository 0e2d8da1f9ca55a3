import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { NatsConnection } from "@nats-io/nats-core";
import { bucketKeys } from "./domain/bucket-keys.js";
import type { Handler } from "./domain/event.js";
import { groupNameFault } from "./domain/group-name.js";
import { parseGroup } from "./domain/group-record.js";
import { LanekeeperError } from "./domain/lanekeeper-error.js";
import type { PublisherOptions } from "./domain/publisher-options.js";
import { versionAtLeast } from "./domain/server-version.js";
import { resolveWorkerOptions, type WorkerOptions } from "./domain/worker-options.js";
import type { Lanes } from "./lanes.js";
import { type LanesOptions, resolveLanesOptions } from "./lanes-options.js";
import { bucketAdapter } from "./nats/bucket-adapter.js";
import { connectionAdapter } from "./nats/connection-adapter.js";
import { type JetStreamApi, jetStreamApi } from "./nats/jetstream-api.js";
import { laneConsumerAdapter } from "./nats/lane-consumer-adapter.js";
import { laneFeedAdapter } from "./nats/lane-feed-adapter.js";
import { publishAdapter } from "./nats/publish-adapter.js";
import { rosterAdapter } from "./nats/roster-adapter.js";
import { snapshotOf, streamAdapter } from "./nats/stream-adapter.js";
import { findOrCreateStream } from "./nats/stream-setup.js";
import type { OpenBucket } from "./runtime/bucket-port.js";
import { systemClock } from "./runtime/clock.js";
import { ConsumerGroup, type Group } from "./runtime/group.js";
import { GroupConsumers } from "./runtime/group-consumers.js";
import { type GroupLanes, SharedGroupLanes } from "./runtime/group-lanes.js";
import type { LaneConsumerPort } from "./runtime/lane-consumer-port.js";
import type { LanePublisher } from "./runtime/lane-publisher.js";
import type { LaneWorker } from "./runtime/lane-worker.js";
import type { LanesContext } from "./runtime/lanes-context.js";
import { notifier } from "./runtime/notifier.js";
import { OwnedGroupLanes } from "./runtime/owned-group-lanes.js";
import { createPublisher } from "./runtime/publisher.js";
import type { RosterPort } from "./runtime/roster-port.js";
import { startWorker } from "./runtime/start-worker.js";
import { StreamWatch } from "./runtime/stream-watch.js";

/** The oldest nats-server whose streams have metadata and subject transforms. */
export const minimumServerVersion = "2.10.0";

/**
 * Opens a stream with lanes. With `create`, makes what is missing; an existing layout always wins.
 *
 * Rejects with INVALID_OPTIONS (every fault at once), SERVER_TOO_OLD, JETSTREAM_UNAVAILABLE, STREAM_NOT_FOUND,
 * LAYOUT_MISSING, LAYOUT_DIFFERS, UNSAFE_STREAM (every reason at once), PERMISSION_DENIED, REQUEST_TIMEOUT, API_ERROR or
 * CONNECTION_CLOSED. Where nobody answers, as during an election, it asks again for 15 s before it says so. The
 * connection stays the caller's: it is never closed here.
 */
export async function openLanes<E extends object = Record<string, unknown>>(
  connection: NatsConnection,
  options: LanesOptions,
): Promise<Lanes<E>> {
  const { stream, create, jetstream, bucket, onNotification } = resolveLanesOptions(options);
  if (connection.isClosed()) {
    throw new LanekeeperError(
      "CONNECTION_CLOSED",
      "openLanes() was given a closed connection; connect first",
    );
  }
  const version = connection.info?.version ?? "unknown";
  if (!versionAtLeast(version, minimumServerVersion)) {
    throw new LanekeeperError(
      "SERVER_TOO_OLD",
      `the server is nats-server ${version}; Lanekeeper needs ${minimumServerVersion} or later`,
    );
  }
  const api = await jetStreamApi(connection, jetstream);
  const { info, layout } = await findOrCreateStream(api, stream, create);
  const clock = systemClock;
  const port = connectionAdapter(connection, api.prefix);
  const closing = new AbortController();
  const streamPort = streamAdapter(api.manager, stream);
  const context: LanesContext = {
    stream,
    layout: Object.freeze(layout),
    opened: snapshotOf(info),
    streamPort,
    connection: port,
    clock,
    closing: closing.signal,
    watch: new StreamWatch(streamPort, layout, clock),
    notify: notifier(onNotification, clock),
  };
  const replicas = context.opened.replicas;
  const buckets = {
    open: once(() => bucketAdapter(connection, api, { bucket, create: create !== undefined, replicas })),
    // Whoever asks about a group has no lease to keep.
    find: once(() =>
      bucketAdapter(connection, api, { bucket, create: false, replicas, requestMs: api.timeoutMs }),
    ),
  };
  const closed = () => new LanekeeperError("CLOSED", "these lanes were closed; open them again");
  return new OpenLanes<E>(connection, api, context, buckets, {
    closing: () => closing.abort(closed()),
    closed: () => port.stop(),
  });
}

interface Buckets {
  /** Makes the bucket when it is missing and `create` was given. */
  readonly open: OpenBucket;
  /** Rejects with BUCKET_NOT_FOUND when it is missing. */
  readonly find: OpenBucket;
}

interface CloseObserver {
  closing(): void;
  /** Nothing runs any more. */
  closed(): void;
}

class OpenLanes<E extends object> implements Lanes<E> {
  readonly #connection: NatsConnection;
  readonly #api: JetStreamApi;
  readonly #context: LanesContext;
  readonly #consumerPort: LaneConsumerPort;
  readonly #consumers: GroupConsumers;
  readonly #buckets: Buckets;
  readonly #roster: RosterPort;
  readonly #observer: CloseObserver;
  readonly #publishers = new Set<LanePublisher<E>>();
  readonly #workers = new Set<LaneWorker>();
  readonly #starting = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(
    connection: NatsConnection,
    api: JetStreamApi,
    context: LanesContext,
    buckets: Buckets,
    observer: CloseObserver,
  ) {
    this.#connection = connection;
    this.#api = api;
    this.#context = context;
    this.#observer = observer;
    this.#buckets = buckets;
    this.#consumerPort = laneConsumerAdapter(api, context.stream);
    this.#consumers = new GroupConsumers(context.layout, this.#consumerPort, context.streamPort, newId);
    this.#roster = rosterAdapter(connection, context.stream);
  }

  get layout(): LanesContext["layout"] {
    return this.#context.layout;
  }

  publisher(options: PublisherOptions = {}): LanePublisher<E> {
    this.#refuseClosed();
    const port = publishAdapter(this.#connection);
    const publisher = createPublisher<E>(this.#context, port, options, (stopped) => {
      this.#publishers.delete(stopped);
    });
    this.#publishers.add(publisher);
    return publisher;
  }

  async work(options: WorkerOptions<E>, handler: Handler<E>): Promise<LaneWorker> {
    this.#refuseClosed();
    const resolved = resolveWorkerOptions(options, defaultWorkerName());
    if (typeof handler !== "function") {
      throw new LanekeeperError(
        "INVALID_OPTIONS",
        "work() needs a handler: a function of an event and a context",
      );
    }
    const { stream, connection, clock } = this.#context;
    const openFeed = laneFeedAdapter(this.#connection, connection, this.#api, stream, clock);
    const parts = {
      context: this.#context,
      consumers: this.#consumers,
      consumerPort: this.#consumerPort,
      openBucket: this.#buckets.open,
      findOwned: (group: string) => this.#findOwned(group),
      newId,
      openFeed,
      roster: this.#roster,
      random: Math.random,
      soon: (run: () => void) => void setImmediate(run),
    };
    const starting = startWorker(parts, resolved, handler);
    this.#starting.add(starting);
    try {
      const worker = await starting;
      this.#workers.add(worker);
      void worker.closed.then(() => this.#workers.delete(worker));
      return worker;
    } finally {
      this.#starting.delete(starting);
    }
  }

  group(name: string): Group {
    const fault = groupNameFault(name);
    if (fault !== undefined) throw new LanekeeperError("INVALID_OPTIONS", fault);
    return new ConsumerGroup({
      name,
      generation: this.layout.generation,
      lanes: () => this.#groupLanes(name),
      filter: (lane) => this.#consumers.filter(lane),
      stream: this.#context.streamPort,
      roster: this.#roster,
      clock: this.#context.clock,
    });
  }

  groups(): Promise<string[]> {
    return this.#consumers.groups();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#observer.closing();
    // A worker that is being started is closed as soon as it has.
    await Promise.allSettled(this.#starting);
    await Promise.all([...this.#workers].map((worker) => worker.close()));
    await Promise.all([...this.#publishers].map((publisher) => publisher.close()));
    this.#observer.closed();
  }

  async #groupLanes(group: string): Promise<GroupLanes> {
    return (await this.#findOwned(group)) ?? new SharedGroupLanes(group, this.#consumers);
  }

  /** A group is owned when the bucket has its record for this very stream. */
  async #findOwned(group: string): Promise<OwnedGroupLanes | undefined> {
    const { streamPort, clock } = this.#context;
    const bucket = await this.#buckets.find().catch((error) => {
      if (LanekeeperError.is(error) && error.code === "BUCKET_NOT_FOUND") return undefined;
      throw error;
    });
    const entry = await bucket?.read(bucketKeys.group(group));
    const record = entry?.value === undefined ? undefined : parseGroup(entry.value);
    if (bucket === undefined || record === undefined) return undefined;
    if (record.created !== (await streamPort.read()).created) return undefined;
    const { generation } = this.layout;
    return new OwnedGroupLanes({
      group,
      generation,
      bucket,
      consumers: this.#consumers,
      clock,
      newId,
      record,
    });
  }

  #refuseClosed(): void {
    this.#context.closing.throwIfAborted();
  }
}

/** Opens what is shared once it is needed; a failure is tried again by the next who needs it. */
function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined;
  return () => {
    opened ??= open().catch((error) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
}

function newId(): string {
  return randomUUID().replaceAll("-", "");
}

function defaultWorkerName(): string {
  return `${hostname()}-${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
}
