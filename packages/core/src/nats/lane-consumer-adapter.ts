import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DeliverPolicy,
  ReplayPolicy,
} from "@nats-io/jetstream";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type {
  ExpectedConsumer,
  LaneConsumerPort,
  LaneConsumerSpec,
  LaneConsumerState,
  ListedConsumer,
} from "../runtime/lane-consumer-port.js";
import { apiCode, apiCodeOf, translateApiError } from "./api-error.js";
import type { JetStreamApi } from "./jetstream-api.js";
import { msToNanos, nanosToMs } from "./nanos.js";

/** Names of the metadata that a lane's consumer carries. */
const meta = {
  group: "lanekeeper.group",
  assignment: "lanekeeper.assignment",
  generation: "lanekeeper.generation",
  lane: "lanekeeper.lane",
  start: "lanekeeper.start",
  incarnation: "lanekeeper.incarnation",
} as const;

export function laneConsumerAdapter(api: JetStreamApi, stream: string): LaneConsumerPort {
  const { consumers } = api.manager;
  const isGone = (name: string) =>
    consumers.info(stream, name).then(
      () => false,
      (error) => apiCodeOf(error) === apiCode.consumerNotFound,
    );
  return {
    async read(name, filter, expected) {
      try {
        return stateOf(await consumers.info(stream, name), filter, expected);
      } catch (error) {
        if (apiCodeOf(error) === apiCode.consumerNotFound) return undefined;
        throw translateApiError(error, `reading consumer ${name}`);
      }
    },
    async create(spec) {
      try {
        await consumers.add(stream, configOf(spec));
        return true;
      } catch (error) {
        const code = apiCodeOf(error);
        if (code === apiCode.consumerExists || code === apiCode.consumerNameInUse) return false;
        if (code === apiCode.workQueueNotUnique) {
          throw new LanekeeperError(
            "CONSUMER_OVERLAPS",
            `creating consumer ${spec.name}: another consumer of the work-queue stream ${stream} already takes ${spec.filter}; ` +
              "a work queue gives each event to one reader only: delete the other consumer or use another retention",
            { cause: error },
          );
        }
        throw translateApiError(error, `creating consumer ${spec.name}`);
      }
    },
    async update(name, { ackWaitMs, maxAckPending }) {
      try {
        const settings = { ack_wait: msToNanos(ackWaitMs), max_ack_pending: maxAckPending };
        await consumers.update(stream, name, settings);
      } catch (error) {
        throw translateApiError(error, `changing the settings of consumer ${name}`);
      }
    },
    async delete(name) {
      try {
        await consumers.delete(stream, name);
      } catch (error) {
        // nats-server 2.10 can fail to remove the files ("directory not empty") of a consumer that it has deleted.
        if (apiCodeOf(error) !== undefined && (await isGone(name))) return;
        throw translateApiError(error, `deleting consumer ${name}`);
      }
    },
    async list() {
      const found: ListedConsumer[] = [];
      try {
        for await (const { name, config, num_waiting } of consumers.list(stream)) {
          const metadata = config.metadata ?? {};
          const group = metadata[meta.group];
          const lane = metadata[meta.lane] === undefined ? undefined : Number(metadata[meta.lane]);
          const assignment = metadata[meta.assignment];
          const incarnation = metadata[meta.incarnation];
          if (group !== undefined)
            found.push({ name, group, lane, assignment, incarnation, waiting: num_waiting });
        }
      } catch (error) {
        throw translateApiError(error, `listing the consumers of stream ${stream}`);
      }
      return found;
    },
  };
}

function configOf(spec: LaneConsumerSpec): Partial<ConsumerConfig> {
  return {
    name: spec.name,
    durable_name: spec.name,
    filter_subject: spec.filter,
    ack_policy: AckPolicy.Explicit,
    ack_wait: msToNanos(spec.ackWaitMs),
    max_ack_pending: spec.maxAckPending,
    max_deliver: -1,
    replay_policy: ReplayPolicy.Instant,
    ...(spec.startSeq > 1
      ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: spec.startSeq }
      : { deliver_policy: DeliverPolicy.All }),
    metadata: {
      [meta.group]: spec.group,
      [meta.assignment]: spec.assignment,
      [meta.generation]: String(spec.generation),
      [meta.lane]: String(spec.lane),
      [meta.start]: String(spec.groupStartSeq),
      [meta.incarnation]: spec.incarnation,
    },
  };
}

function stateOf(info: ConsumerInfo, filter: string, expected: ExpectedConsumer): LaneConsumerState {
  const { config } = info;
  const metadata = config.metadata ?? {};
  const number = (name: string) => (metadata[name] === undefined ? undefined : Number(metadata[name]));
  return {
    name: info.name,
    group: metadata[meta.group],
    generation: number(meta.generation),
    lane: number(meta.lane),
    incarnation: metadata[meta.incarnation],
    created: Date.parse(String(info.created)),
    groupStartSeq: number(meta.start) ?? 1,
    startSeq: config.opt_start_seq ?? 1,
    ackWaitMs: nanosToMs(config.ack_wait ?? 0),
    maxAckPending: config.max_ack_pending ?? 0,
    ackFloor: info.ack_floor.stream_seq,
    deliveries: info.delivered.consumer_seq,
    deliveredSeq: info.delivered.stream_seq,
    // Kept in memory only, unlike the rest (measured on 2.10 and 2.15).
    deliversAgain: info.delivered.last_active !== undefined,
    pending: info.num_pending,
    inFlight: info.num_ack_pending,
    redelivered: info.num_redelivered,
    waiting: info.num_waiting,
    differences: differencesOf(config, filter, expected),
  };
}

/** Everything that would break a lane: settings that reorder, skip, or hand an event to two at once (O1, O3). */
function differencesOf(config: ConsumerConfig, filter: string, expected: ExpectedConsumer): string[] {
  const differences: string[] = [];
  const expect = (name: string, found: unknown, wanted: unknown) => {
    if (found !== wanted)
      differences.push(`${name} is ${JSON.stringify(found)} where a lane needs ${JSON.stringify(wanted)}`);
  };
  const filters =
    config.filter_subjects ?? (config.filter_subject === undefined ? [] : [config.filter_subject]);
  expect("filter_subject", filters.join(","), filter);
  expect("ack_policy", config.ack_policy, "explicit");
  if (expected.maxAckPending !== undefined) {
    expect("max_ack_pending", config.max_ack_pending, expected.maxAckPending);
  }
  expect("max_deliver", config.max_deliver ?? -1, -1);
  expect("deliver_subject", config.deliver_subject, undefined);
  expect("backoff", (config.backoff?.length ?? 0) > 0, false);
  expect("headers_only", config.headers_only ?? false, false);
  expect("inactive_threshold", config.inactive_threshold ?? 0, 0);
  expect("metadata lanekeeper.assignment", config.metadata?.[meta.assignment], expected.assignment);
  return differences;
}
