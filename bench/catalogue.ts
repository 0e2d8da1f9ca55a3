import type { Benchmark } from "./benchmarks/benchmark.js";
import { consume } from "./benchmarks/consume.js";
import { failover } from "./benchmarks/failover.js";
import { keys } from "./benchmarks/keys.js";
import { latency } from "./benchmarks/latency.js";
import { micro } from "./benchmarks/micro.js";
import { peers } from "./benchmarks/peers.js";
import { publish } from "./benchmarks/publish.js";
import { scale } from "./benchmarks/scale.js";
import { work } from "./benchmarks/work.js";

/** All benchmarks, in the order in which they run. */
export const catalogue: readonly Benchmark[] = [
  publish,
  consume,
  work,
  keys,
  latency,
  scale,
  failover,
  micro,
  peers,
];
