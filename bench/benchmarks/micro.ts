import { encodeKey, laneOf } from "@lanekeeper/partitioner";
import murmurhash from "murmurhash";
import { compare } from "../measure/compare.js";
import { between, takeMark } from "../measure/mark.js";
import { OrderCheck } from "../measure/order-check.js";
import type { Row } from "../measure/row.js";
import type { Contestant, Trial } from "../measure/trial.js";
import { laneMachineSteps, promiseChains } from "../subjects/key-queues.js";
import { keyName, keySequence } from "../workload/key-sequence.js";
import { type Benchmark, sized } from "./benchmark.js";

const KEYS = 1_000;
const LANES = 64;

export const micro: Benchmark = {
  name: "micro",
  summary: "laneOf, encodeKey and the lane machine alone, without I/O",
  notes: [
    "Calls per second in a loop in this process, nothing else going on, after two rounds that do not count; here a message is one call, or for the lane machine one event delivered and handled. There is no server, so its CPU is not given.",
    "laneOf beside the murmurhash package and a modulo; encodeKey beside encodeURIComponent; the lane machine beside a chain of promises per key, the usual way to write it by hand, which has no retries, no fencing and no memory of what is settled.",
  ],
  async run(options) {
    const calls = sized(options.quick ? 300_000 : 3_000_000, options, 1_000);
    const names = Array.from({ length: KEYS }, (_, key) => keyName(key));
    const sequence = keySequence({
      keys: KEYS,
      messages: calls / 5,
      distribution: "uniform",
      seed: options.seed,
    });
    const rows: Row[] = [];
    const beside = async (name: string, subject: Contestant, reference: Contestant) => {
      rows.push(
        ...(await compare({ name, subjects: [subject], references: [reference], warmUpRounds: 2 }, options)),
      );
    };
    await beside(
      "micro, key to lane, 64 lanes",
      calling("laneOf", names, calls, (key) => laneOf(key, LANES)),
      calling("murmurhash.v3 % 64", names, calls, (key) => murmurhash.v3(key) % LANES),
    );
    await beside(
      "micro, key to lane as the server, 64 lanes",
      calling("laneOf, fnv1a", names, calls, (key) => laneOf(key, LANES, "fnv1a")),
      calling("murmurhash.v3 % 64", names, calls, (key) => murmurhash.v3(key) % LANES),
    );
    await beside(
      "micro, key to token",
      calling("encodeKey", names, calls, (key) => encodeKey(key).length),
      calling("encodeURIComponent", names, calls, (key) => encodeURIComponent(key).length),
    );
    await beside(
      "micro, one lane, 1,000 keys",
      queueing("lane machine", sequence, laneMachineSteps),
      queueing("promise chain per key", sequence, promiseChains),
    );
    return { rows };
  },
};

function calling(
  name: string,
  keys: readonly string[],
  calls: number,
  call: (key: string) => number,
): Contestant {
  return {
    name,
    async run(): Promise<Trial> {
      // The sum is looked at, so that the calls cannot be left out.
      let sum = 0;
      const from = takeMark(0, []);
      for (let n = 0; n < calls; n++) sum += call(keys[n % keys.length] ?? "");
      const to = takeMark(calls, []);
      if (!Number.isFinite(sum)) throw new Error(`the results of ${name} are no numbers`);
      return { ...between(from, to, 0), serverCpuMicros: undefined };
    },
  };
}

function queueing(
  name: string,
  sequence: Uint32Array,
  handleAll: (sequence: Uint32Array, order: OrderCheck) => Promise<void>,
): Contestant {
  return {
    name,
    async run(): Promise<Trial> {
      const order = new OrderCheck(KEYS);
      const from = takeMark(0, []);
      await handleAll(sequence, order);
      const to = takeMark(order.ended, []);
      if (order.ended !== sequence.length) {
        throw new Error(`${sequence.length - order.ended} of ${sequence.length} events were lost`);
      }
      return { ...between(from, to, order.faults), serverCpuMicros: undefined };
    },
  };
}
