import { setTimeout as sleep } from "node:timers/promises";
import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import type { WaitRange } from "./worker-task.js";

/** Stands for the call to another service that a handler makes: the same wait for the same event in every mode. */
export async function simulatedIo(wait: WaitRange, seed: number, seq: number): Promise<void> {
  // Neighbouring seeds give unlike numbers only after a few draws; the product spreads them at once.
  const generator = xoroshiro128plus(Math.imul(seed + seq, 0x9e3779b1));
  await sleep(uniformInt(generator, wait.minMs, wait.maxMs));
}
