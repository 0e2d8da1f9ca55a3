import { DeliveryRun } from "../../packages/core/src/domain/delivery-run.js";
import { LaneMachine } from "../../packages/core/src/domain/lane-machine.js";
import { Lease } from "../../packages/core/src/domain/lease.js";
import type { BucketPort } from "../../packages/core/src/runtime/bucket-port.js";
import type { LaneConsumerPort } from "../../packages/core/src/runtime/lane-consumer-port.js";
import { LaneTakeover } from "../../packages/core/src/runtime/lane-takeover.js";
import type { SimServer } from "./sim-server.js";
import type { PortWrappers } from "./sim-worker.js";
import { Timeline } from "./timeline.js";

/** A mistake put into production code, or between it and the server, for as long as a simulation runs. */
export interface PlantedFault {
  readonly name: string;
  /** A seed that has found it before, tried first. */
  readonly foundBy: number;
  /** Changes production classes in place; returns how to change them back. */
  readonly patch?: (server: SimServer) => () => void;
  readonly wrappers?: PortWrappers;
  /** Changes the server, where the mistake is in what the server is asked. */
  readonly server?: (server: SimServer) => void;
}

export const plantedFaults: readonly PlantedFault[] = [
  {
    name: "no self-fencing",
    foundBy: 1,
    patch: () => replace(Lease.prototype, "lapsed", () => () => false),
  },
  {
    name: "the lease is counted from the receipt of the confirmation",
    foundBy: 1,
    patch: () =>
      replace(
        Lease.prototype,
        "confirmed",
        (original) =>
          function (this: Lease) {
            const clock = Timeline.clockOfCurrent();
            original.call(this, clock.now(), clock.wall());
          },
      ),
  },
  { name: "death is declared by reading", foundBy: 8, wrappers: { bucket: deathByReading } },
  {
    name: "the epoch is missing from the consumer's name",
    foundBy: 190,
    server: (server) => {
      server.identify = (name) => name.replace(/-e\d+$/, "");
    },
  },
  { name: "a claim without compare-and-set", foundBy: 3, wrappers: { bucket: claimWithoutComparing } },
  { name: "floor 0 is believed", foundBy: 222, wrappers: { consumers: floorBelieved } },
  {
    name: "a hand-over without its baseline check",
    foundBy: 5,
    patch: (server) =>
      replace(
        LaneTakeover.prototype,
        "inspect",
        (original) =>
          async function (this: LaneTakeover, lane, claim) {
            const base = await original.call(this, lane, claim);
            const { consumer, consumerEpoch, startSeq, cleanAt } = claim;
            if (base.adopted || consumer === undefined || cleanAt === undefined || base.previous !== consumer)
              return base;
            // What the consumer says now, whatever it was when it was handed over.
            const deliveries = server.consumer(consumer)?.state([]).deliveries ?? cleanAt;
            return { ...base, adopted: true, consumer: { consumer, consumerEpoch, startSeq }, deliveries };
          },
      ),
  },
  {
    name: "per-key FIFO is replaced by per-message concurrency",
    foundBy: 1,
    patch: () =>
      replace(
        LaneMachine.prototype,
        "step",
        (original) =>
          function (this: LaneMachine, input) {
            if (input.type !== "delivered") return original.call(this, input);
            return original.call(this, { ...input, key: `${input.key} ${input.seq}` });
          },
      ),
  },
  {
    name: "an ack before the handler ends",
    foundBy: 2,
    wrappers: {
      openFeed: (open) => (observer) => {
        const feed = open({
          ...observer,
          delivered(delivery) {
            feed.ack(delivery);
            observer.delivered(delivery);
          },
        });
        return feed;
      },
    },
  },
  {
    name: "no rewind on a gap",
    foundBy: 3,
    patch: () => replace(DeliveryRun.prototype, "accepts", () => () => true),
  },
];

function replace<T extends object, K extends keyof T>(
  target: T,
  name: K,
  make: (original: T[K]) => T[K],
): () => void {
  const original = target[name];
  target[name] = make(original);
  return () => {
    target[name] = original;
  };
}

/** Whoever was seen unchanged for a lease counts as dead, and nothing is written. */
function deathByReading(port: BucketPort): BucketPort {
  return {
    ...port,
    async write(key, value, expected) {
      if (!key.includes(".member.") || !value.includes('"dead"')) return port.write(key, value, expected);
      return { type: "written", revision: expected + 0.5 };
    },
  };
}

function claimWithoutComparing(port: BucketPort): BucketPort {
  return {
    ...port,
    async write(key, value, expected) {
      if (!key.includes(".lane.")) return port.write(key, value, expected);
      for (;;) {
        const outcome = await port.write(key, value, (await port.read(key))?.revision ?? 0);
        if (outcome.type !== "conflict") return outcome;
      }
    },
  };
}

/** The floor that the last consumer tells is where the next one starts, also when it has not had an ack yet. */
function floorBelieved(port: LaneConsumerPort, server: SimServer): LaneConsumerPort {
  return {
    ...port,
    create(spec) {
      const last = [...server.consumers].filter(({ spec: other }) => other.lane === spec.lane).at(-1);
      if (last === undefined) return port.create(spec);
      return port.create({ ...spec, startSeq: last.state([]).ackFloor + 1 });
    },
  };
}
