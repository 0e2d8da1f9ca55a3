import { type LaneLayout, layoutConfig, layoutFromMetadata } from "@lanekeeper/partitioner";
import type { StreamConfig, StreamInfo } from "@nats-io/jetstream";
import { oldestWithBatches } from "../domain/batch-support.js";
import { foreignSubjects } from "../domain/foreign-subjects.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { carrierFault } from "../domain/layout-state.js";
import { versionAtLeast } from "../domain/server-version.js";
import { unsafeSettings } from "../domain/stream-rules.js";
import { systemClock } from "../runtime/clock.js";
import { patiently } from "../runtime/patience.js";
import { apiCode, apiCodeOf, isLeaderless, translateApiError } from "./api-error.js";
import type { JetStreamApi } from "./jetstream-api.js";
import { snapshotOf } from "./stream-adapter.js";

/** Groups for which a stream made here has consumers enough; takeovers have two of a lane for a moment. */
const groupsAtMost = 32;

export interface StreamWish {
  readonly layout: LaneLayout;
  readonly streamConfig: Partial<StreamConfig>;
}

/**
 * Finds the stream and its layout; with a wish, makes what is missing. An existing layout always wins over the wish.
 * Whatever is found or made is checked against every rule before it is returned.
 */
export async function findOrCreateStream(
  api: JetStreamApi,
  stream: string,
  wish: StreamWish | undefined,
): Promise<{ info: StreamInfo; layout: LaneLayout }> {
  let info = await readStream(api, stream);
  if (info === undefined) {
    if (wish === undefined) {
      throw new LanekeeperError(
        "STREAM_NOT_FOUND",
        `stream ${stream} does not exist; create it, or pass \`create\` so that openLanes does`,
      );
    }
    info = await createStream(api, stream, wish);
  }
  let layout = readLayout(stream, info);
  if (layout === undefined) {
    if (wish === undefined) {
      throw new LanekeeperError(
        "LAYOUT_MISSING",
        `stream ${stream} has no lanekeeper.* metadata, so its lanes are not known; pass \`create\` to add a layout`,
      );
    }
    info = await addLayout(api, stream, info, wish.layout);
    // Read back: the metadata spells out what a wish may leave to defaults, and somebody may have been faster.
    layout = readLayout(stream, info) ?? wish.layout;
  }
  check(stream, info, layout);
  return { info, layout };
}

async function readStream(api: JetStreamApi, stream: string): Promise<StreamInfo | undefined> {
  try {
    // Another process may have made it just now: on replicas nobody answers for it before it has a leader.
    return await patiently(systemClock, () => api.manager.streams.info(stream), { passes: isLeaderless });
  } catch (error) {
    if (apiCodeOf(error) === apiCode.streamNotFound) return undefined;
    throw translateApiError(error, `reading stream ${stream}`);
  }
}

async function createStream(api: JetStreamApi, stream: string, wish: StreamWish): Promise<StreamInfo> {
  const wanted = layoutConfig(wish.layout);
  const { metadata, ...rest } = wish.streamConfig;
  // Only where publishers send batches; an older server would not know the setting.
  const takesBatches =
    wish.layout.mapping !== "stream" && versionAtLeast(api.serverVersion(), oldestWithBatches);
  const config = {
    deny_delete: true,
    ...(takesBatches ? { allow_atomic: true } : {}),
    // nats-server 2.15 allows 1,000 when nothing is said: fewer than one group of 1,024 lanes needs.
    max_consumers: Math.max(1_000, wish.layout.lanes * groupsAtMost),
    ...rest,
    name: stream,
    subjects: wanted.subjects,
    metadata: { ...metadata, ...wanted.metadata },
    ...(wish.layout.mapping === "stream" ? { subject_transform: wanted.transform } : {}),
  } as StreamConfig & { name: string };
  try {
    return await api.patientManager.streams.add(config);
  } catch (error) {
    // Another process was faster; what it made wins.
    const existing = apiCodeOf(error) === apiCode.streamNameInUse ? await readStream(api, stream) : undefined;
    if (existing !== undefined) return existing;
    throw translateApiError(error, `creating stream ${stream}`);
  }
}

function readLayout(stream: string, info: StreamInfo): LaneLayout | undefined {
  try {
    return layoutFromMetadata(info.config.metadata);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new LanekeeperError(
      "LAYOUT_DIFFERS",
      `the layout metadata of stream ${stream} is damaged: ${text}`,
      { cause },
    );
  }
}

/** Gives an existing stream without a layout its first one: its subjects, transform and metadata, in one update. */
async function addLayout(
  api: JetStreamApi,
  stream: string,
  info: StreamInfo,
  layout: LaneLayout,
): Promise<StreamInfo> {
  const what = `adding a layout to stream ${stream}`;
  const { subject_transform: transform } = info.config;
  const moves =
    layout.mapping === "stream" || transform === undefined
      ? []
      : [`its subject transform (→ ${transform.dest}) would move events between lanes; remove it`];
  refuseUnfit(stream, info.config, layout, moves);
  const wanted = layoutConfig(layout);
  const subjects = [...new Set([...(info.config.subjects ?? []), ...wanted.subjects])];
  try {
    return await api.patientManager.streams.update(stream, {
      subjects,
      metadata: { ...info.config.metadata, ...wanted.metadata },
      ...(layout.mapping === "stream" && wanted.transform ? { subject_transform: wanted.transform } : {}),
    });
  } catch (error) {
    throw translateApiError(error, what);
  }
}

function check(stream: string, info: StreamInfo, layout: LaneLayout): void {
  refuseUnfit(stream, info.config, layout, []);
  const fault = carrierFault(layout, snapshotOf(info));
  if (fault !== undefined) throw fault;
}

/** Throws UNSAFE_STREAM with every reason at once. */
function refuseUnfit(
  stream: string,
  config: Partial<StreamConfig>,
  layout: LaneLayout,
  more: readonly string[],
): void {
  const reasons = [...unsafeSettings(config, layout.lanes), ...more];
  const foreign = foreignSubjects(layout.subject, layoutConfig(layout).subjects, config.subjects ?? []);
  if (foreign.length > 0) {
    reasons.push(
      `it also stores ${foreign.slice(0, 5).join(", ")}, where an event could have no lane and never be handled; ` +
        "replace these subjects by the layout's own (layoutConfig lists them)",
    );
  }
  if (reasons.length === 0) return;
  throw new LanekeeperError("UNSAFE_STREAM", `stream ${stream} is not fit for lanes: ${reasons.join("; ")}`);
}
