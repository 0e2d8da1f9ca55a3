import type { LaneMachine } from "../../packages/core/dist/domain/lane-machine.js";
import type { OrderCheck } from "../measure/order-check.js";
import { keyName } from "../workload/key-sequence.js";

/** The machine is inside the package on purpose; only this benchmark looks at it. */
const MACHINE = new URL("../../../packages/core/dist/domain/lane-machine.js", import.meta.url);
const RETRY = { attempts: 12, initialDelayMs: 200, factor: 2, maxDelayMs: 30_000, jitter: 0.2 };
const IN_HAND = 256;

/** As a lane with maxAckPending 256 gets them: 256 events in hand, one handled and acked for each that comes. */
export async function laneMachineSteps(sequence: Uint32Array, order: OrderCheck): Promise<void> {
  const module: { LaneMachine: typeof LaneMachine } = await import(MACHINE.href);
  const memory = { isSettled: () => false, delivered() {}, settled() {}, clear() {} };
  const machine = new module.LaneMachine({ retry: RETRY, onExhausted: "block" }, memory);
  const places = new PlaceCounter(sequence);
  /** Runs that have started and not ended, in the order of their starts. */
  const runs: { run: number; seq: number }[] = [];
  let ended = 0;
  const apply = (effects: ReturnType<LaneMachine["step"]>) => {
    for (const effect of effects) {
      if (effect.type !== "start") continue;
      const key = sequence[effect.seq - 1] ?? 0;
      order.start(key, places.of(effect.seq));
      runs.push({ run: effect.run, seq: effect.seq });
    }
  };
  const endOne = () => {
    const next = runs[ended++];
    if (next === undefined) throw new Error("events are held and none runs");
    order.end(sequence[next.seq - 1] ?? 0);
    apply(machine.step({ type: "handled", run: next.run }));
  };
  for (const [index, key] of sequence.entries()) {
    apply(machine.step({ type: "delivered", seq: index + 1, key: keyName(key), stamp: STAMP }));
    if (machine.held >= IN_HAND) endOne();
  }
  while (machine.held > 0) endOne();
}

/** What is usually written by hand: each event runs when the promise of its key's last one has settled. */
export async function promiseChains(sequence: Uint32Array, order: OrderCheck): Promise<void> {
  const places = new PlaceCounter(sequence);
  const tails = new Map<string, Promise<void>>();
  const running = new Set<Promise<void>>();
  for (const [index, number] of sequence.entries()) {
    const key = keyName(number);
    const tail = (tails.get(key) ?? Promise.resolve()).then(() => {
      order.start(number, places.of(index + 1));
      order.end(number);
    });
    const own = tail.finally(() => {
      running.delete(own);
      if (tails.get(key) === own) tails.delete(key);
    });
    tails.set(key, own);
    running.add(own);
    if (running.size >= IN_HAND) await Promise.race(running);
  }
  await Promise.all(running);
}

const STAMP = "1";

/** Which place an event has among its key's, counted beforehand. */
class PlaceCounter {
  readonly #places: Uint32Array;

  constructor(sequence: Uint32Array) {
    const counts = new Map<number, number>();
    this.#places = sequence.map((key) => {
      const place = (counts.get(key) ?? 0) + 1;
      counts.set(key, place);
      return place;
    });
  }

  /** `seq` counts from 1. */
  of(seq: number): number {
    return this.#places[seq - 1] ?? 0;
  }
}
