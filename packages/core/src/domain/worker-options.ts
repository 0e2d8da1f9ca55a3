import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type Codec, jsonCodec } from "./codec.js";
import { groupNameFault } from "./group-name.js";
import type { Notification } from "./notification.js";
import { OptionFaults, show } from "./option-faults.js";
import { type RetryOptions, type RetryPolicy, resolveRetry } from "./retry-policy.js";

export type Assignment = "owned" | "shared";

/** Where a new group starts, and a rewound one. A sequence or time beyond the end of the stream means its end. */
export type GroupStart = "all" | "new" | { startSeq: number } | { startTime: Date };

export interface WorkerOptions<E extends object> {
  /** 1 to 64 of A–Z, a–z, 0–9, `_`, `-`. Workers of one group share its events; groups are independent. */
  group: string;
  /**
   * `"owned"` (default): each lane has one owner at a time. `"shared"`: every worker pulls every lane and the server
   * arbitrates; it needs no bucket and no right to create consumers at run time. docs/guarantees.md compares them.
   */
  assignment?: Assignment;
  /** Names the worker in status and logs: printable, at most 128 characters. Default hostname-pid-random. */
  name?: string;
  /** Default `"all"`. Resolved once, when the group is first seen, for all its lanes; ignored afterwards. */
  deliverPolicy?: GroupStart;
  /**
   * The lane consumer's MaxAckPending: events of a lane in hand at once. 1 to 10,000; default 1. With more, different keys
   * of one lane run at the same time and the events of a key still one after the other; only with `"owned"`.
   */
  maxAckPending?: number;
  /** Handlers at once in this worker, over all lanes. 1 to 65,536; default 256. */
  concurrency?: number;
  /**
   * Milliseconds after which the server gives an event of a silent worker to another. 1,000 to 3,600,000; default 30,000.
   * A rise applies at once. A lower value is applied when no other worker of the group is pulling, because a worker that
   * still counts on the longer one could overlap; until then the longer one holds.
   */
  ackWaitMs?: number;
  /**
   * Owned: milliseconds after which the lanes of a worker that is not heard of go to others. 1,000 to 600,000; default
   * 5,000, or 12,000 where the bucket is replicated, because its elections take 4 to 9 s.
   */
  leaseMs?: number;
  /** Milliseconds; 10 to 86,400,000; default none. Then the signal aborts; the lane waits until the handler has settled. */
  handlerTimeoutMs?: number;
  retry?: RetryOptions;
  /** What happens when an event's attempts are spent: keep trying at the longest delay (default), or give it up. */
  onExhausted?: "block" | "drop";
  codec?: Codec;
  /** Checked after the codec; a mismatch is terminal for the event, and the handler gets the schema's output. */
  schema?: StandardSchemaV1<unknown, E[keyof E]> | { [K in keyof E]?: StandardSchemaV1<unknown, E[K]> };
  /** Aborting it closes the worker. */
  signal?: AbortSignal;
  /** Called synchronously with every fact of this worker; a throw is reported once and swallowed. */
  onNotification?: (notification: Notification) => void;
}

/** The options as checked and completed. */
export interface ResolvedWorkerOptions {
  readonly group: string;
  readonly assignment: Assignment;
  readonly name: string;
  readonly deliverPolicy: GroupStart;
  readonly maxAckPending: number;
  readonly concurrency: number;
  readonly ackWaitMs: number;
  /** Undefined: by the bucket's replicas. */
  readonly leaseMs: number | undefined;
  readonly handlerTimeoutMs: number | undefined;
  readonly retry: RetryPolicy;
  readonly onExhausted: "block" | "drop";
  readonly codec: Codec;
  readonly schemaFor: (type: string) => StandardSchemaV1 | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onNotification: ((notification: Notification) => void) | undefined;
}

const known = [
  "group",
  "assignment",
  "name",
  "deliverPolicy",
  "maxAckPending",
  "concurrency",
  "ackWaitMs",
  "leaseMs",
  "handlerTimeoutMs",
  "retry",
  "onExhausted",
  "codec",
  "schema",
  "signal",
  "onNotification",
];

/** `defaultName` is the worker's name when none is given. Throws INVALID_OPTIONS with every fault at once. */
export function resolveWorkerOptions<E extends object>(
  options: WorkerOptions<E>,
  defaultName: string,
): ResolvedWorkerOptions {
  const faults = new OptionFaults("work() options");
  if (typeof options !== "object" || options === null) {
    faults.add(`must be an object, not ${show(options)}`);
    faults.throwIfAny();
  }
  faults.unknown(options, known);
  const groupFault = groupNameFault(options.group);
  if (groupFault !== undefined) faults.add(groupFault);
  const assignment = faults.oneOf("assignment", options.assignment, "owned", ["owned", "shared"]);
  const maxAckPending = faults.number("maxAckPending", options.maxAckPending, 1, { min: 1, max: 10_000 });
  if (assignment === "shared" && maxAckPending !== 1) {
    faults.add(
      `maxAckPending must be 1 with assignment "shared", not ${maxAckPending}: more would lose order`,
    );
  }
  if (assignment === "shared" && options.leaseMs !== undefined) {
    faults.add('leaseMs is for assignment "owned": shared lanes have no lease');
  }
  faults.callback("onNotification", options.onNotification);
  const resolved = Object.freeze({
    group: options.group,
    assignment,
    name: workerName(options.name, defaultName, faults),
    deliverPolicy: groupStart(options.deliverPolicy, faults),
    maxAckPending,
    concurrency: faults.number("concurrency", options.concurrency, 256, { min: 1, max: 65_536 }),
    ackWaitMs: faults.number("ackWaitMs", options.ackWaitMs, 30_000, { min: 1_000, max: 3_600_000 }),
    leaseMs:
      options.leaseMs === undefined
        ? undefined
        : faults.number("leaseMs", options.leaseMs, 0, { min: 1_000, max: 600_000 }),
    handlerTimeoutMs:
      options.handlerTimeoutMs === undefined
        ? undefined
        : faults.number("handlerTimeoutMs", options.handlerTimeoutMs, 0, { min: 10, max: 86_400_000 }),
    retry: resolveRetry(options.retry, faults),
    onExhausted: faults.oneOf("onExhausted", options.onExhausted, "block", ["block", "drop"]),
    codec: codecOf(options.codec, faults),
    schemaFor: schemaLookup(options.schema, faults),
    signal: signalOf(options.signal, faults),
    onNotification: options.onNotification,
  });
  faults.throwIfAny();
  return resolved;
}

function workerName(name: unknown, defaultName: string, faults: OptionFaults): string {
  if (name === undefined) return defaultName;
  if (typeof name === "string" && /^[\x21-\x7e]{1,128}$/.test(name)) return name;
  faults.add(`name must be 1 to 128 printable ASCII characters without spaces, not ${show(name)}`);
  return "";
}

function groupStart(start: unknown, faults: OptionFaults): GroupStart {
  const fallback = "all";
  if (start === undefined || start === "all" || start === "new") return start ?? fallback;
  if (typeof start === "object" && start !== null) {
    const { startSeq, startTime } = start as { startSeq?: unknown; startTime?: unknown };
    if (Number.isSafeInteger(startSeq) && (startSeq as number) >= 1 && startTime === undefined) {
      return { startSeq: startSeq as number };
    }
    if (startTime instanceof Date && !Number.isNaN(startTime.getTime()) && startSeq === undefined) {
      return { startTime };
    }
  }
  faults.add(
    `deliverPolicy must be "all", "new", { startSeq: an integer from 1 } or { startTime: a valid Date }, not ${show(start)}`,
  );
  return fallback;
}

function codecOf(codec: Codec | undefined, faults: OptionFaults): Codec {
  if (codec === undefined) return jsonCodec;
  if (typeof codec?.encode !== "function" || typeof codec?.decode !== "function") {
    faults.add("codec must have the functions encode and decode");
    return jsonCodec;
  }
  return codec;
}

function signalOf(signal: AbortSignal | undefined, faults: OptionFaults): AbortSignal | undefined {
  if (signal !== undefined && !(signal instanceof AbortSignal))
    faults.add(`signal must be an AbortSignal, not ${show(signal)}`);
  return signal;
}

/** One schema for every type, or one per type; types that are not named are not checked. */
function schemaLookup(schema: unknown, faults: OptionFaults): ResolvedWorkerOptions["schemaFor"] {
  if (schema === undefined) return () => undefined;
  if (isSchema(schema)) return () => schema;
  if (typeof schema !== "object" || schema === null) {
    faults.add(`schema must be a Standard Schema or an object of them by event type, not ${show(schema)}`);
    return () => undefined;
  }
  const byType = new Map<string, StandardSchemaV1>();
  for (const [type, one] of Object.entries(schema)) {
    if (isSchema(one)) byType.set(type, one);
    else if (one !== undefined) faults.add(`schema[${JSON.stringify(type)}] is not a Standard Schema`);
  }
  return (type) => byType.get(type);
}

function isSchema(value: unknown): value is StandardSchemaV1 {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return false;
  const standard = (value as { "~standard"?: { validate?: unknown } })["~standard"];
  return typeof standard?.validate === "function";
}
