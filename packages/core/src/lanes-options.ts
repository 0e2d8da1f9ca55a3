import { type LaneHash, type LaneLayout, layoutFaults, type Mapping } from "@lanekeeper/partitioner";
import type { JetStreamOptions, StreamConfig } from "@nats-io/jetstream";
import { defaultBucket } from "./domain/bucket-keys.js";
import type { Notification } from "./domain/notification.js";
import { OptionFaults, show } from "./domain/option-faults.js";
import { streamNameFault } from "./domain/stream-name.js";
import { unsafeSettings } from "./domain/stream-rules.js";

export interface LanesOptions {
  /** The stream's name. */
  stream: string;
  /** Used only for what is missing. Absent: nothing is created, and what is missing is a typed error. */
  create?: CreateLanes;
  /** nats.js's own: `domain`, `apiPrefix`, `timeout` (milliseconds, default 5,000). */
  jetstream?: JetStreamOptions;
  /** The KV bucket of claims, for owned workers. A-Z, a-z, 0-9, "_", "-"; default derived from the stream's name. */
  bucket?: string;
  /** Called synchronously with every fact; a throw is reported once and swallowed. */
  onNotification?: (notification: Notification) => void;
}

/** A new stream's first layout. An existing layout wins and is never an error: pods keep starting after a lane-count change. */
export interface CreateLanes {
  /** `"orders"`: events are stored as `orders.<lane>.<key>.<type>`. */
  subject: string;
  /** 1 to 4,096; default 64. */
  lanes?: number;
  /** Default `murmur3`; `fnv1a` where the server maps. */
  hash?: LaneHash;
  /** Who puts an event into its lane; default `"publisher"`. */
  mapping?: Mapping;
  /** Server mappings: what publishers publish to; default `in.<subject>.{key}.*`. The wildcards become the type. */
  intake?: string;
  /** JetStream's names and units; refused when something in it would break order or lose events unseen. */
  streamConfig?: Partial<StreamConfig>;
}

/** Options as checked: nothing about them can fail later. */
export interface ResolvedLanesOptions {
  readonly stream: string;
  readonly create: { readonly layout: LaneLayout; readonly streamConfig: Partial<StreamConfig> } | undefined;
  readonly jetstream: JetStreamOptions;
  readonly bucket: string;
  readonly onNotification: ((notification: Notification) => void) | undefined;
}

const known = ["stream", "create", "jetstream", "bucket", "onNotification"];
const knownCreate = ["subject", "lanes", "hash", "mapping", "intake", "streamConfig"];

/** Throws INVALID_OPTIONS with every fault at once. */
export function resolveLanesOptions(options: LanesOptions): ResolvedLanesOptions {
  const faults = new OptionFaults("openLanes() options");
  if (typeof options !== "object" || options === null) {
    faults.add(`must be an object, not ${show(options)}`);
    faults.throwIfAny();
  }
  faults.unknown(options, known);
  const nameFault = streamNameFault(options.stream);
  if (nameFault !== undefined) faults.add(nameFault);
  const { bucket } = options;
  if (bucket !== undefined && (typeof bucket !== "string" || !/^[A-Za-z0-9_-]{1,128}$/.test(bucket))) {
    faults.add(`bucket must be 1 to 128 characters out of A-Z, a-z, 0-9, "_" and "-", not ${show(bucket)}`);
  }
  faults.callback("onNotification", options.onNotification);
  if (options.jetstream?.domain !== undefined && options.jetstream.apiPrefix !== undefined) {
    faults.add("jetstream.domain and jetstream.apiPrefix exclude each other");
  }
  const create = options.create === undefined ? undefined : resolveCreate(options.create, faults);
  faults.throwIfAny();
  return Object.freeze({
    stream: options.stream,
    create,
    jetstream: { ...options.jetstream },
    bucket: bucket ?? defaultBucket(options.stream),
    onNotification: options.onNotification,
  });
}

function resolveCreate(create: CreateLanes, faults: OptionFaults): ResolvedLanesOptions["create"] {
  if (typeof create !== "object" || create === null) {
    faults.add(`create must be an object, not ${show(create)}`);
    return undefined;
  }
  faults.unknown(create, knownCreate);
  const mapping = create.mapping ?? "publisher";
  const hash = create.hash ?? (mapping === "publisher" ? "murmur3" : "fnv1a");
  const layout: LaneLayout = {
    subject: create.subject,
    generation: 1,
    lanes: create.lanes ?? 64,
    hash,
    mapping,
    ...(create.intake === undefined ? {} : { intake: create.intake }),
  };
  for (const fault of layoutFaults(layout)) faults.add(`create.${fault}`);
  const streamConfig = create.streamConfig ?? {};
  for (const name of ["name", "subjects", "subject_transform"] as const) {
    if (streamConfig[name] !== undefined) {
      faults.add(
        `create.streamConfig.${name} is Lanekeeper's own: it follows from stream, subject, lanes and mapping`,
      );
    }
  }
  const reserved = Object.keys(streamConfig.metadata ?? {}).filter((name) => name.startsWith("lanekeeper."));
  if (reserved.length > 0) faults.add(`create.streamConfig.metadata must not set ${reserved.join(", ")}`);
  for (const reason of unsafeSettings(streamConfig, layout.lanes))
    faults.add(`create.streamConfig: ${reason}`);
  return { layout, streamConfig };
}
