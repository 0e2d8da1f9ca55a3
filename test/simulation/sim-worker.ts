import { bucketKeys } from "../../packages/core/src/domain/bucket-keys.js";
import type { Handler } from "../../packages/core/src/domain/event.js";
import { parseGroup } from "../../packages/core/src/domain/group-record.js";
import type { Notification } from "../../packages/core/src/domain/notification.js";
import { resolveWorkerOptions, type WorkerOptions } from "../../packages/core/src/domain/worker-options.js";
import type { JetStreamApi } from "../../packages/core/src/nats/jetstream-api.js";
import { laneFeedAdapter } from "../../packages/core/src/nats/lane-feed-adapter.js";
import type { BucketPort } from "../../packages/core/src/runtime/bucket-port.js";
import { GroupConsumers } from "../../packages/core/src/runtime/group-consumers.js";
import type { LaneConsumerPort } from "../../packages/core/src/runtime/lane-consumer-port.js";
import type { OpenLaneFeed } from "../../packages/core/src/runtime/lane-feed-port.js";
import type { LaneWorker } from "../../packages/core/src/runtime/lane-worker.js";
import type { LanesContext } from "../../packages/core/src/runtime/lanes-context.js";
import { OwnedGroupLanes } from "../../packages/core/src/runtime/owned-group-lanes.js";
import { startWorker } from "../../packages/core/src/runtime/start-worker.js";
import { StreamWatch } from "../../packages/core/src/runtime/stream-watch.js";
import type { SeededRandom } from "../harness/seeded-random.js";
import type { LaneJudge } from "./lane-judge.js";
import { SimConnection } from "./sim-connection.js";
import type { SimLink } from "./sim-link.js";
import { type PortRules, simPorts } from "./sim-ports.js";
import type { SimServer } from "./sim-server.js";

/** What a planted fault may put between production code and the simulated server. */
export interface PortWrappers {
  readonly bucket?: (port: BucketPort, server: SimServer) => BucketPort;
  readonly consumers?: (port: LaneConsumerPort, server: SimServer) => LaneConsumerPort;
  readonly openFeed?: (open: OpenLaneFeed) => OpenLaneFeed;
}

export interface SimWorkerParts {
  readonly link: SimLink;
  readonly server: SimServer;
  readonly random: SeededRandom;
  readonly rules: PortRules;
  readonly judge: LaneJudge;
  readonly wrappers: PortWrappers;
  readonly notify: (notification: Omit<Notification, "at">) => void;
}

/** Starts a production worker in a simulated process: what `openLanes(...).work()` does, over simulated ports. */
export async function startSimWorker(
  parts: SimWorkerParts,
  options: WorkerOptions<Record<string, unknown>>,
  handler: Handler<Record<string, unknown>>,
): Promise<LaneWorker> {
  const { link, server, random, rules, judge, wrappers } = parts;
  const { process } = link;
  const { clock } = process;
  const { layout, name: stream } = server.stream.options;
  const connection = new SimConnection(link, server, (subject, body) =>
    judge.sent(process.name, subject, body),
  );
  const ports = simPorts(link, server, server.timeline, random, rules);
  const watched = watchBeats(ports.bucket, server, judge, process.name);
  const bucket = wrappers.bucket?.(watched, server) ?? watched;
  const consumerPort = wrappers.consumers?.(ports.consumers, server) ?? ports.consumers;
  let ids = 0;
  const newId = () => `${random.hex(8)}${process.name}x${++ids}`;
  const consumers = new GroupConsumers(layout, consumerPort, ports.stream, newId);
  const context: LanesContext = {
    closing: new AbortController().signal,
    stream,
    layout,
    opened: await ports.stream.read(),
    streamPort: ports.stream,
    connection: connection.asPort(),
    clock,
    watch: new StreamWatch(ports.stream, layout, clock),
    notify: parts.notify,
  };
  const api = { prefix: "$JS.API", timeoutMs: rules.timeoutMs } as JetStreamApi;
  const adapter = laneFeedAdapter(connection.asClient(), context.connection, api, stream, clock);
  const open = wrappers.openFeed?.(adapter) ?? adapter;
  const startParts = {
    context,
    consumers,
    consumerPort,
    openBucket: async () => bucket,
    findOwned: (group: string) => findOwned(group),
    newId,
    openFeed: ((observer) =>
      open({
        ...observer,
        delivered: (delivery) => {
          judge.delivered(process.name, delivery);
          observer.delivered(delivery);
        },
      })) as OpenLaneFeed,
    roster: ports.roster,
    soon: (run: () => void) => void clock.after(0, run),
    random: () => random.next(),
  };
  async function findOwned(group: string): Promise<OwnedGroupLanes | undefined> {
    const entry = await bucket.read(bucketKeys.group(group));
    const record = entry?.value === undefined ? undefined : parseGroup(entry.value);
    if (record === undefined) return undefined;
    return new OwnedGroupLanes({
      group,
      generation: layout.generation,
      bucket,
      consumers,
      clock,
      newId,
      record,
    });
  }
  return startWorker(startParts, resolveWorkerOptions(options, process.name), handler);
}

/** Tells the judge when the beats that the bucket has were sent. */
function watchBeats(bucket: BucketPort, server: SimServer, judge: LaneJudge, process: string): BucketPort {
  const sent = new Map<string, number>();
  server.bucket.observe(({ key, value }) => {
    const at = value === undefined ? undefined : sent.get(`${key} ${value}`);
    if (at !== undefined) judge.beat(process, at);
  });
  return {
    ...bucket,
    write(key, value, expected) {
      if (key.includes(".member.")) {
        const name = `${key} ${value}`;
        if (!value.includes('"dead"') && !value.includes('"returned"')) sent.set(name, server.timeline.now);
      }
      return bucket.write(key, value, expected);
    },
  };
}
