import type { LaneLayout } from "@lanekeeper/partitioner";
import { laneFilter } from "@lanekeeper/partitioner";
import type { ErrorCode } from "../../packages/core/src/domain/error-code.js";
import { LanekeeperError } from "../../packages/core/src/domain/lanekeeper-error.js";
import type {
  BucketEntry,
  BucketPort,
  BucketWatch,
  WriteOutcome,
} from "../../packages/core/src/runtime/bucket-port.js";
import type { LaneConsumerPort } from "../../packages/core/src/runtime/lane-consumer-port.js";
import type { RosterPort } from "../../packages/core/src/runtime/roster-port.js";
import type { StreamPort } from "../../packages/core/src/runtime/stream-port.js";
import type { SeededRandom } from "../harness/seeded-random.js";
import type { SimLink } from "./sim-link.js";
import type { SimServer } from "./sim-server.js";
import type { Timeline } from "./timeline.js";

export interface PortRules {
  readonly timeoutMs: number;
  /** How far watches may lag, at most; and how often one falls silent. */
  readonly watchLagMs: number;
  readonly silentWatch: number;
}

export interface SimPorts {
  readonly stream: StreamPort;
  readonly consumers: LaneConsumerPort;
  readonly bucket: BucketPort;
  readonly roster: RosterPort;
}

/** One process's requests to the simulated server. */
export function simPorts(
  link: SimLink,
  server: SimServer,
  timeline: Timeline,
  random: SeededRandom,
  rules: PortRules,
): SimPorts {
  /** `unavailable` is asked at the server: then there is no leader, and usually no answer. */
  function ask<T>(work: () => T, unavailable: () => boolean = () => server.down): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = link.process.clock.after(rules.timeoutMs, () =>
        reject(new LanekeeperError("REQUEST_TIMEOUT", "no answer within the request timeout")),
      );
      link.send((reply) => {
        if (server.down || unavailable()) {
          if (random.chance(0.5)) reply(() => refuse("JETSTREAM_UNAVAILABLE", "no leader"));
          return;
        }
        let answer: () => void;
        try {
          const value = work();
          answer = () => resolve(value);
        } catch (error) {
          answer = () => reject(error);
        }
        reply(() => {
          timer.stop();
          answer();
        });
      });
      const refuse = (code: ErrorCode, text: string) => {
        timer.stop();
        reject(new LanekeeperError(code, text));
      };
    });
  }

  return {
    stream: streamPort(server, ask),
    consumers: {
      read: (name, filter, expected) => ask(() => server.read(name, filter, expected)),
      create: (spec) => ask(() => server.create(spec)),
      update: (name, settings) =>
        ask(() => {
          const consumer = server.consumer(name);
          if (consumer === undefined) throw new LanekeeperError("CONSUMER_NOT_FOUND", `${name} is not there`);
          consumer.update(settings);
        }),
      delete: (name) => ask(() => server.delete(name)),
      list: () => ask(() => server.list()),
    },
    bucket: bucketPort(link, server, timeline, random, rules, ask),
    roster: { answer: () => () => {}, ask: () => Promise.resolve([]) },
  };
}

type Ask = <T>(work: () => T, unavailable?: () => boolean) => Promise<T>;

function streamPort({ stream }: SimServer, ask: Ask): StreamPort {
  const { layout } = stream.options;
  return {
    read: () => ask(() => stream.snapshot()),
    holds: (seq) => ask(() => stream.get(seq) !== undefined),
    nextMatching: (filter, from) =>
      ask(() => {
        const event = stream.nextOf(laneOfFilter(layout, filter), from);
        return event === undefined ? undefined : stream.describe(event);
      }),
    lastMatching: (filter) =>
      ask(() => {
        const event = stream.byLane[laneOfFilter(layout, filter)]?.findLast(({ removed }) => !removed);
        return event === undefined ? undefined : stream.describe(event);
      }),
    sequenceAt: (time) =>
      ask(() => {
        const found = stream.events.find((event) => stream.describe(event).storedAt >= time);
        return found?.seq ?? stream.events.length + 1;
      }),
  };
}

function laneOfFilter(layout: LaneLayout, filter: string): number {
  for (let lane = 0; lane < layout.lanes; lane++) if (laneFilter(layout, lane) === filter) return lane;
  throw new Error(`${filter} is no lane's filter`);
}

function bucketPort(
  link: SimLink,
  server: SimServer,
  timeline: Timeline,
  random: SeededRandom,
  rules: PortRules,
  ask: Ask,
): BucketPort {
  const electing = () => server.bucketElecting;

  function write(key: string, value: string | undefined, expected: number): Promise<WriteOutcome> {
    return new Promise((resolve) => {
      const timer = link.process.clock.after(rules.timeoutMs, () => resolve({ type: "unknown" }));
      const settle = (outcome: WriteOutcome) => {
        timer.stop();
        resolve(outcome);
      };
      link.send((reply) => {
        if (server.down || electing()) {
          const fate = random.next();
          if (fate < 0.3) reply(() => settle({ type: "unknown" }));
          // Proposed before the leader was lost, and applied by the next one.
          else if (fate < 0.6)
            timeline.plan(server.bucketElectedAt + random.between(0, 50), () => {
              server.bucket.write(key, value, expected);
            });
          return;
        }
        const outcome = server.bucket.write(key, value, expected);
        if (!random.chance(server.rules.lostAnswer)) reply(() => settle(outcome));
      });
    });
  }

  return {
    replicas: server.rules.bucketReplicas,
    read: (key) => ask(() => server.bucket.read(key), electing),
    write,
    async remove(key, expected) {
      const outcome = await write(key, undefined, expected);
      if (outcome.type !== "written") return outcome;
      // As the real adapter does; without it the mark stays, and says the same.
      await ask(() => server.bucket.forget(key, outcome.revision), electing).catch(() => {});
      return outcome;
    },
    keys: (prefix) => ask(() => server.bucket.keys(prefix), electing),
    watch: (prefix, changed) => watch(link, server, timeline, random, rules, prefix, changed),
  };
}

/** Told late, sometimes very late, sometimes nothing any more until it is started again; in order while it lasts. */
function watch(
  link: SimLink,
  server: SimServer,
  timeline: Timeline,
  random: SeededRandom,
  rules: PortRules,
  prefix: string,
  changed: (entry: BucketEntry) => void,
): BucketWatch {
  let round = 0;
  let stopCurrent = () => {};
  const begin = () => {
    const mine = ++round;
    stopCurrent();
    link.send((reply) => {
      if (mine !== round) return;
      let silent = false;
      let at = 0;
      const tell = (entry: BucketEntry) => {
        if (silent) return;
        if (random.chance(rules.silentWatch)) silent = true;
        const lag = random.chance(0.1) ? random.between(0, rules.watchLagMs) : 0;
        at = Math.max(at, timeline.now + lag);
        timeline.plan(at, () =>
          reply(() => {
            if (mine === round) changed(entry);
          }),
        );
      };
      for (const entry of server.bucket.entries(prefix)) tell(entry);
      const stop = server.bucket.observe((entry) => {
        if (entry.key.startsWith(prefix)) tell(entry);
      });
      stopCurrent = stop;
    });
  };
  begin();
  // The client's own watch starts over by itself when it is connected again.
  const stopObserving = link.observe((change) => {
    if (change === "reconnected") begin();
  });
  link.process.onDeath(() => stopCurrent());
  return {
    restart: begin,
    stop() {
      round++;
      stopObserving();
      stopCurrent();
    },
  };
}
