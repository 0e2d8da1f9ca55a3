/** Compiled, never run: uses every public declaration as it is promised to users. What breaks here breaks them. */
import {
  decodeKey,
  encodeKey,
  type LaneHash,
  type LaneLayout,
  type LaneShares,
  laneOf,
  laneShares,
  laneSubject,
  layoutConfig,
  type Mapping,
  PartitionerError,
  parseLaneSubject,
} from "@lanekeeper/partitioner";
import type { JetStreamOptions, StreamConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  bytesCodec,
  type CloseReason,
  type Codec,
  type CreateLanes,
  type ErrorCode,
  type EventMeta,
  errorCodes,
  type Fence,
  type Group,
  type GroupStatus,
  type Handler,
  type HandlerContext,
  jsonCodec,
  type LaneEvent,
  LanekeeperError,
  type LanePublisher,
  type LaneStatus,
  type Lanes,
  type LanesOptions,
  type LaneWorker,
  type Notification,
  type NotificationType,
  type OutgoingEvent,
  openLanes,
  type PublisherOptions,
  type PublishReceipt,
  RetryableError,
  type RetryOptions,
  TerminalError,
  type WorkerOptions,
  type WorkerStatus,
} from "./index.js";
import { startTestServer, testContext, testEvent } from "./testing/index.js";

/** Both ways assignable: the declaration is exactly this. */
type Same<A, B> = [A, B] extends [B, A] ? true : never;
function exactly<A, B>(_: Same<A, B>): void {}

type Shop = { placed: { total: number }; paid: { method: string } };

export function partitioner(): unknown {
  exactly<LaneHash, "murmur3" | "murmur2" | "fnv1a">(true);
  exactly<Mapping, "publisher" | "stream" | "account">(true);
  const layout: LaneLayout = {
    subject: "orders",
    generation: 1,
    lanes: 12,
    hash: "fnv1a",
    mapping: "stream",
    intake: "in.orders.{key}.*",
  };
  const lane: number = laneOf("k", 12, "murmur2") + laneOf("k", 12);
  const token: string = decodeKey(encodeKey("k"));
  const subject: string = laneSubject(layout, { key: "k", type: "t" });
  const parsed: { lane: number; key: string; type: string } = parseLaneSubject(layout, subject);
  const config: {
    readonly subjects: readonly string[];
    readonly transform?: { readonly src: string; readonly dest: string };
    readonly metadata: Readonly<Record<string, string>>;
  } = layoutConfig(layout);
  const shares: LaneShares = laneShares(new Set(["a"]), 12, "murmur3");
  const { keys, events, perLane, largestShare, hotKeys } = shares;
  const counts: number[] = [keys, events, largestShare, ...perLane.map((one) => one.keys + one.events)];
  const hot: [string, number][] = hotKeys.map(({ key, share }) => [key, share]);
  const code: string = new PartitionerError("INVALID_KEY", "text").code;
  return [lane, token, parsed, config, counts, hot, code];
}

export async function opening(connection: NatsConnection): Promise<void> {
  const streamConfig: Partial<StreamConfig> = { num_replicas: 3 };
  const jetstream: JetStreamOptions = { domain: "hub", timeout: 3_000 };
  const create: CreateLanes = {
    subject: "orders",
    lanes: 64,
    hash: "murmur3",
    mapping: "publisher",
    intake: "in.orders.{key}.*",
    streamConfig,
  };
  const onNotification = (notification: Notification): void => void notification;
  const options: LanesOptions = { stream: "ORDERS", create, jetstream, bucket: "claims", onNotification };
  await using lanes: Lanes<Shop> = await openLanes<Shop>(connection, options);
  const untyped: Lanes<Record<string, unknown>> = await openLanes(connection, { stream: "ORDERS" });
  const layout: LaneLayout = lanes.layout;
  const groups: string[] = await lanes.groups();
  await untyped.close();
  void [layout, groups];
}

export async function publishing(lanes: Lanes<Shop>): Promise<void> {
  const codec: Codec = { encode: jsonCodec.encode, decode: bytesCodec.decode };
  const options: PublisherOptions = { codec, timeoutMs: 30_000, maxPending: 10, maxPendingBytes: 1_000 };
  await using publisher: LanePublisher<Shop> = lanes.publisher(options);
  lanes.publisher();
  const event: OutgoingEvent<Shop, "paid"> = {
    key: "k",
    type: "paid",
    data: { method: "card" },
    id: "1",
    expectLastSeq: 0,
    headers: { a: "b", c: ["d", "e"] },
  };
  await publisher.ready();
  const receipt: PublishReceipt = await publisher.publish(event);
  const { lane, seq, duplicate }: { lane: number; seq: number; duplicate: boolean } = receipt;
  await publisher.flush();
  await publisher.close();
  void [lane, seq, duplicate];
}

export async function working(
  lanes: Lanes<Shop>,
  schema: StandardSchemaV1<unknown, Shop["paid"]>,
): Promise<void> {
  const retry: RetryOptions = {
    attempts: 12,
    initialDelayMs: 200,
    factor: 2,
    maxDelayMs: 30_000,
    jitter: 0.2,
  };
  exactly<NonNullable<WorkerOptions<Shop>["assignment"]>, "owned" | "shared">(true);
  const options: WorkerOptions<Shop> = {
    group: "billing",
    assignment: "owned",
    leaseMs: 5_000,
    name: "w1",
    deliverPolicy: { startTime: new Date() },
    maxAckPending: 1,
    concurrency: 256,
    ackWaitMs: 30_000,
    handlerTimeoutMs: 1_000,
    retry,
    onExhausted: "drop",
    codec: jsonCodec,
    schema: { paid: schema },
    signal: new AbortController().signal,
    onNotification: () => {},
  };
  for (const deliverPolicy of ["all", "new", { startSeq: 1 }] as const) void { ...options, deliverPolicy };
  const handler: Handler<Shop> = async (event: LaneEvent<Shop>, context: HandlerContext) => {
    const meta: EventMeta = event;
    const { key, id, subject, bytes, headers, lane, generation, seq, storedAt, attempt } = meta;
    const texts: (string | undefined)[] = [key, id, subject, context.group, context.workerId];
    const numbers: number[] = [lane, generation, seq, attempt, storedAt.getTime(), bytes.length];
    const values: Readonly<Record<string, readonly string[]>> = headers;
    const fence: Fence = context.fence;
    const proof: { token: number; incarnation: string } = fence;
    const signal: AbortSignal = context.signal;
    void [texts, numbers, values, proof, signal];
  };
  await using worker: LaneWorker = await lanes.work(options, handler);
  const id: string = worker.id;
  const owned: number[] = worker.lanes();
  const status: WorkerStatus = worker.status();
  const { healthy, error, lanes: of, inFlight, oldestHandler, eventLoopLagMs } = status;
  const oldest: { key: string; ageMs: number } | undefined = oldestHandler;
  const fault: LanekeeperError | undefined = error;
  await worker.close();
  await worker.close({ graceMs: 1_000 });
  const reason: CloseReason = await worker.closed;
  if (reason.type !== "closed") {
    exactly<typeof reason.type, "connection-closed" | "stream-missing" | "failed">(true);
    const why: LanekeeperError = reason.error;
    void why;
  }
  void [id, owned, healthy, of, inFlight, oldest, fault, eventLoopLagMs];
}

export async function groups(lanes: Lanes<Shop>): Promise<void> {
  const group: Group = lanes.group("billing");
  const status: GroupStatus = await group.status();
  const { pending, inFlight, oldestMs, workers, lanes: perLane, blockedKeys } = status;
  const who: (readonly [string, readonly number[]])[] = workers.map((one) => [one.id, one.lanes] as const);
  const lane: LaneStatus | undefined = perLane[0];
  if (lane !== undefined) {
    const owner: string | undefined = lane.owner;
    const counts = [lane.generation, lane.lane, lane.pending, lane.inFlight, lane.redelivered, lane.ackFloor];
    const numbers: number[] = counts;
    void [owner, numbers];
  }
  await group.caughtUp();
  await group.caughtUp({ signal: AbortSignal.timeout(1_000) });
  await group.rewind("all");
  await group.rewind({ startSeq: 5 });
  await group.rewind({ startTime: new Date() });
  await group.delete();
  const keys: readonly string[] = blockedKeys;
  void [pending, inFlight, oldestMs, who, keys];
}

export function errors(notification: Notification): void {
  const terminal: LanekeeperError = new TerminalError("never", { cause: new Error("x") });
  const retryable: LanekeeperError = new RetryableError("later", { retryAfterMs: 5, cause: "x" });
  const code: ErrorCode = terminal.code;
  const codes: readonly ErrorCode[] = errorCodes;
  const anything: unknown = retryable;
  if (LanekeeperError.is(anything)) void anything.code;
  const { type, at, group, lane, key, seq, error } = notification;
  const kind: NotificationType = type;
  const facts: [Date, string?, number?, string?, number?, LanekeeperError?] = [at];
  void [code, codes, kind, facts, group, lane, key, seq, error];
}

export const allTypes: NotificationType[] = [
  "lane-claimed",
  "lane-released",
  "fenced",
  "rewound",
  "layout-changed",
  "retry",
  "parked",
  "dropped",
  "blocked",
  "lost",
  "misrouted",
  "handler-stuck",
  "loop-blocked",
  "overlap-possible",
  "unhealthy",
  "healthy",
];

export async function testing(): Promise<void> {
  const event: LaneEvent<never> = testEvent({ key: "k", type: "paid", data: { method: "card" }, lane: 3 });
  const context: HandlerContext = testContext({ workerId: "w" });
  await using server = await startTestServer({ nodes: 3, config: "max_payload: 65536" });
  const one: AsyncDisposable & { url: string } = await startTestServer({ nodes: 1 });
  const other: AsyncDisposable & { url: string } = await startTestServer();
  void [event, context, server.url, one.url, other.url];
}
