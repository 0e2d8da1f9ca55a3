import type { Handler } from "../domain/event.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { leaseRules } from "../domain/lease.js";
import type { ResolvedWorkerOptions } from "../domain/worker-options.js";
import type { OpenBucket } from "./bucket-port.js";
import type { GroupConsumers } from "./group-consumers.js";
import type { LaneConsumerPort } from "./lane-consumer-port.js";
import type { LaneWorker } from "./lane-worker.js";
import type { LanesContext } from "./lanes-context.js";
import { reportLoss } from "./loss-report.js";
import type { OwnedGroupLanes } from "./owned-group-lanes.js";
import { OwnedLanes } from "./owned-lanes.js";
import { patiently } from "./patience.js";
import { SharedLanes } from "./shared-lanes.js";
import type { Proof } from "./shared-policy.js";
import { continueOwnedGroup } from "./shared-start.js";
import type { StreamSnapshot } from "./stream-port.js";
import { Worker, type WorkerParts } from "./worker.js";

export interface StartParts extends WorkerParts {
  readonly consumers: GroupConsumers;
  readonly consumerPort: LaneConsumerPort;
  readonly openBucket: OpenBucket;
  /** The group's lanes when they are, or were, owned. */
  readonly findOwned: (group: string) => Promise<OwnedGroupLanes | undefined>;
  /** Ids and nonces: unique among all processes. */
  readonly newId: () => string;
}

/**
 * Starts a worker. `shared`: every lane's consumer exists and is pulled when this resolves. `owned`: the worker is a live
 * member; lanes follow.
 */
export async function startWorker<E extends object>(
  parts: StartParts,
  options: ResolvedWorkerOptions,
  handler: Handler<E>,
): Promise<LaneWorker> {
  const snapshot = await whileOpen(parts.context, () => lookAtStream(parts.context));
  // Handlers are called with the events of the caller's map; nothing here looks into them.
  const untyped = handler as unknown as Handler<Record<string, unknown>>;
  return options.assignment === "owned"
    ? startOwned(parts, options, untyped, snapshot)
    : startShared(parts, options, untyped, snapshot);
}

/** Asks again where nobody answers, but not for lanes that are closed. */
function whileOpen<T>({ clock, closing: signal }: LanesContext, ask: () => Promise<T>): Promise<T> {
  return patiently(clock, ask, { signal });
}

async function lookAtStream({ watch }: LanesContext): Promise<StreamSnapshot> {
  const state = await watch.look();
  if (state.type !== "ok") throw state.error;
  return state.snapshot;
}

async function startShared(
  parts: StartParts,
  options: ResolvedWorkerOptions,
  handler: Handler<Record<string, unknown>>,
  snapshot: StreamSnapshot,
): Promise<LaneWorker> {
  const { context, consumers } = parts;
  const wish = {
    group: options.group,
    assignment: "shared",
    start: options.deliverPolicy,
    ackWaitMs: options.ackWaitMs,
  } as const;
  const owned = await whileOpen(context, () => parts.findOwned(options.group));
  if (owned !== undefined) {
    await whileOpen(context, () => continueOwnedGroup(owned, consumers, wish, snapshot));
  }
  const group = await whileOpen(context, () => consumers.ensure(wish, snapshot));
  const ackWaitMs = Math.min(...group.lanes.map((lane) => lane.ackWaitMs));
  const proof = await prove(context);
  const { created } = snapshot;
  const worker = new Worker(parts, options, handler, ackWaitMs, proof, (host) => {
    return new SharedLanes({ context, consumers, wish, group, created }, host);
  });
  reportLoss(group, snapshot, worker.notify);
  return worker;
}

async function startOwned(
  parts: StartParts,
  options: ResolvedWorkerOptions,
  handler: Handler<Record<string, unknown>>,
  snapshot: StreamSnapshot,
): Promise<LaneWorker> {
  const { context } = parts;
  if (snapshot.retention === "interest" && snapshot.replicas > 1) {
    throw new LanekeeperError(
      "UNSAFE_STREAM",
      `stream ${context.stream} has interest retention and ${snapshot.replicas} replicas, which loses events when consumers change; ` +
        'use limits or work-queue retention, or assignment "shared"',
    );
  }
  const bucket = await whileOpen(context, parts.openBucket);
  const rules = leaseRules(options.leaseMs ?? (bucket.replicas > 1 ? 12_000 : 5_000));
  const proof = await prove(context);
  let lanes: OwnedLanes | undefined;
  const worker = new Worker(parts, options, handler, options.ackWaitMs, proof, (host) => {
    lanes = new OwnedLanes({ ...parts, bucket, rules, snapshot }, host);
    return lanes;
  });
  try {
    await lanes?.join();
    return worker;
  } catch (error) {
    await worker.close({ graceMs: 0 });
    throw error;
  }
}

async function prove({ clock, connection }: LanesContext): Promise<Proof> {
  const proof = { at: clock.now(), wall: clock.wall() };
  await connection.ping();
  return proof;
}
