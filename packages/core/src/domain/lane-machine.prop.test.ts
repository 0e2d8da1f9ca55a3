import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CompletedMemory } from "./completed-memory.js";
import { type LaneEffect, type LaneInput, LaneMachine } from "./lane-machine.js";

/**
 * A lane's server, the machine and its handlers under random interleavings; a checker beside them that knows nothing of
 * the machine but what goes in and what comes out.
 */
describe("one lane under random deliveries, failures, lapses, resets and closing", () => {
  test.each([1, 4])("O1, O2, O3, O6 hold with MaxAckPending %i", (maxAckPending) => {
    fc.assert(
      fc.property(history, (moves) => {
        expect(faultsOf(moves, maxAckPending, sound)).toEqual([]);
      }),
      { numRuns: 3_000 },
    );
  });

  test("O4: left alone, everything stored is handled in the end", () => {
    fc.assert(
      fc.property(history, (moves) => {
        const world = new World(2, sound);
        for (const move of moves) if (move.type !== "close") world.take(move);
        world.heal();
        expect(world.unsettled()).toEqual([]);
        expect(world.faults).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

describe("the checker bites: each planted fault is found", () => {
  const planted: [fault: string, invariant: string, maxAckPending: number, plant: Plant][] = [
    ["an event is acked before its handler has ended", "O3", 1, ackAtStart],
    ["a key starts while its handler runs", "O2", 4, ignoreBusyKeys],
    ["a lapse is ignored", "O6", 1, ignoreLapses],
    ["a later event of the key starts first", "O1", 4, reverseStarts],
    ["what was completed runs again", "completed", 1, runCompletedAgain],
    ["a running event is given back when the worker closes", "O2", 1, releaseRunning],
  ];

  test.each(planted)("%s", (_, invariant, maxAckPending, plant) => {
    const found = fc.check(
      fc.property(history, (moves) => {
        const faults = faultsOf(moves, maxAckPending, plant);
        return !faults.some((fault) => fault.startsWith(invariant));
      }),
      { numRuns: 5_000, seed: 11 },
    );
    expect(found.failed).toBe(true);
  });
});

/** The machine, or one with a fault planted between it and the world. */
type Stepper = { step(input: LaneInput): LaneEffect[] };
type Plant = (machine: LaneMachine) => Stepper;

function sound(machine: LaneMachine): Stepper {
  return machine;
}

function ackAtStart(machine: LaneMachine): Stepper {
  return {
    step: (input) =>
      machine
        .step(input)
        .flatMap((effect): LaneEffect[] =>
          effect.type === "start" ? [effect, { type: "ack", seq: effect.seq, again: false }] : [effect],
        ),
  };
}

/** Every event gets a key of its own, so that nothing waits for its predecessors. */
function ignoreBusyKeys(machine: LaneMachine): Stepper {
  return {
    step: (input) =>
      machine.step(input.type === "delivered" ? { ...input, key: `${input.key}-${input.seq}` } : input),
  };
}

function ignoreLapses(machine: LaneMachine): Stepper {
  return { step: (input) => (input.type === "lapsed" ? [] : machine.step(input)) };
}

/** Hands every other delivery in after the one that followed it. */
function reverseStarts(machine: LaneMachine): Stepper {
  let kept: LaneInput | undefined;
  return {
    step(input) {
      if (input.type === "closing" || input.type === "reset") kept = undefined;
      if (input.type !== "delivered") return machine.step(input);
      if (kept === undefined) {
        kept = input;
        return [];
      }
      const effects = [...machine.step(input), ...machine.step(kept)];
      kept = undefined;
      return effects;
    },
  };
}

/** Sees every delivery under a new stamp, and so never knows one again that it has settled. */
function runCompletedAgain(machine: LaneMachine): Stepper {
  let deliveries = 0;
  return {
    step: (input) =>
      machine.step(input.type === "delivered" ? { ...input, stamp: `${++deliveries}` } : input),
  };
}

function releaseRunning(machine: LaneMachine): Stepper {
  const running = new Map<number, number>();
  return {
    step(input) {
      if (input.type === "handled" || input.type === "failed") running.delete(input.run);
      const effects = machine.step(input);
      for (const effect of effects) if (effect.type === "start") running.set(effect.run, effect.seq);
      if (input.type !== "closing") return effects;
      return [
        ...effects,
        ...[...running.values()].map((seq): LaneEffect => ({ type: "release", seq, delayMs: 0 })),
      ];
    },
  };
}

type Move =
  | { type: "store"; key: string; misrouted: boolean }
  | { type: "deliver" }
  | { type: "redeliver"; pick: number }
  | { type: "elsewhere"; pick: number }
  | { type: "end"; pick: number; how: "handled" | "failed" | "terminal" }
  | { type: "lapse"; pick: number }
  | { type: "remove"; pick: number }
  | { type: "pass"; ms: number }
  | { type: "remake" }
  | { type: "close" };

const pick = fc.nat(9);
const history = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        type: fc.constant("store" as const),
        key: fc.constantFrom("a", "b", "c"),
        misrouted: fc.integer({ min: 0, max: 30 }).map((roll) => roll === 0),
      }),
    },
    { weight: 10, arbitrary: fc.constant({ type: "deliver" as const }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant("redeliver" as const), pick }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant("elsewhere" as const), pick }) },
    {
      weight: 9,
      arbitrary: fc.record({
        type: fc.constant("end" as const),
        pick,
        how: fc.constantFrom("handled" as const, "handled" as const, "failed" as const, "terminal" as const),
      }),
    },
    { weight: 3, arbitrary: fc.record({ type: fc.constant("lapse" as const), pick }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("remove" as const), pick }) },
    {
      weight: 4,
      arbitrary: fc.record({ type: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 600 }) }),
    },
    { weight: 1, arbitrary: fc.constant({ type: "remake" as const }) },
    { weight: 1, arbitrary: fc.constant({ type: "close" as const }) },
  ) satisfies fc.Arbitrary<Move>,
  { minLength: 5, maxLength: 70 },
);

function faultsOf(moves: readonly Move[], maxAckPending: number, plant: Plant): string[] {
  const world = new World(maxAckPending, plant);
  for (const move of moves) world.take(move);
  return world.faults;
}

interface Stored {
  readonly seq: number;
  readonly key: string;
  readonly misrouted: boolean;
  /** `ours`: delivered to this worker and not settled. `free`: to be delivered. `settled`: acked, dropped or removed. */
  state: "free" | "ours" | "settled";
  everStarted: boolean;
  removed: boolean;
}

/** The server's side of one lane, and the checker. Deliveries go in stream order, redeliveries first, as JetStream does. */
class World {
  readonly faults: string[] = [];
  readonly #maxAckPending: number;
  readonly #machine: Stepper;
  readonly #stored: Stored[] = [];
  readonly #running = new Map<number, Stored>();
  /** Handled here to the end while the event was ours. */
  readonly #completed = new Set<Stored>();
  readonly #ended = new Set<Stored>();
  #closed = false;
  #now = 0;

  constructor(maxAckPending: number, plant: Plant) {
    this.#maxAckPending = maxAckPending;
    const retry = { attempts: 2, initialDelayMs: 50, factor: 2, maxDelayMs: 200, jitter: 0 };
    this.#machine = plant(new LaneMachine({ retry, onExhausted: "block" }, new CompletedMemory()));
  }

  take(move: Move): void {
    switch (move.type) {
      case "store":
        this.#stored.push({
          seq: this.#stored.length + 1,
          key: move.key,
          misrouted: move.misrouted,
          state: "free",
          everStarted: false,
          removed: false,
        });
        break;
      case "deliver":
        this.#deliver();
        break;
      case "redeliver": {
        const event = this.#pickOf("ours", move.pick);
        if (event !== undefined) this.#give(event);
        break;
      }
      case "elsewhere": {
        // A stale redelivery of something that was settled: a server that came back from a crash.
        const event = this.#pickOf("settled", move.pick);
        if (event !== undefined && this.#completed.has(event) && !event.removed) this.#give(event);
        break;
      }
      case "end":
        this.#end(move);
        break;
      case "lapse": {
        const event = this.#pickOf("ours", move.pick);
        if (event === undefined) break;
        if (this.#maxAckPending > 1) {
          // A lane with more than one event in hand lapses as a whole: its later ones must not run before this one.
          this.take({ type: "remake" });
        } else {
          event.state = "free";
          this.#step({ type: "lapsed", seq: event.seq });
        }
        break;
      }
      case "remove": {
        const event = this.#pickOf("ours", move.pick);
        if (event === undefined || [...this.#running.values()].includes(event)) break;
        event.removed = true;
        this.#step({ type: "gone", seq: event.seq });
        break;
      }
      case "pass":
        this.#now += move.ms;
        this.#step({ type: "tick", now: this.#now });
        break;
      case "remake":
        for (const event of this.#stored) if (event.state === "ours") event.state = "free";
        this.#step({ type: "reset", forget: false });
        break;
      case "close":
        if (this.#closed) break;
        this.#closed = true;
        this.#step({ type: "closing", now: this.#now });
        break;
    }
  }

  /** Delivers, handles and waits until nothing changes any more. */
  heal(): void {
    for (let round = 0; round < this.#stored.length * 4 + 10; round++) {
      for (const event of this.#stored) {
        if (event.misrouted && event.state === "ours" && !event.removed) {
          event.removed = true;
          this.#step({ type: "gone", seq: event.seq });
        }
      }
      this.#deliver();
      this.take({ type: "pass", ms: 1_000 });
      this.#end({ type: "end", pick: 0, how: "handled" });
    }
  }

  unsettled(): number[] {
    return this.#stored.filter(({ state }) => state !== "settled").map(({ seq }) => seq);
  }

  #deliver(): void {
    const ours = this.#stored.filter(({ state }) => state === "ours").length;
    const next = this.#stored.find(({ state }) => state === "free");
    if (next === undefined || ours >= this.#maxAckPending) return;
    next.state = "ours";
    this.#give(next);
  }

  #give({ seq, key, misrouted }: Stored): void {
    this.#step({ type: misrouted ? "misrouted" : "delivered", seq, key, stamp: `at-${seq}` });
  }

  #end({ pick, how }: Move & { type: "end" }): void {
    const runs = [...this.#running.keys()];
    const run = runs[pick % Math.max(runs.length, 1)];
    if (run === undefined) return;
    const event = this.#running.get(run) as Stored;
    this.#running.delete(run);
    if (how === "handled") {
      this.#ended.add(event);
      this.#step({ type: "handled", run });
    } else {
      const terminal = how === "terminal";
      this.#step({ type: "failed", run, terminal, roll: 0, now: this.#now });
    }
  }

  #pickOf(state: Stored["state"], pick: number): Stored | undefined {
    const found = this.#stored.filter((event) => event.state === state);
    return found[pick % Math.max(found.length, 1)];
  }

  #step(input: LaneInput): void {
    for (const effect of this.#machine.step(input)) this.#check(effect);
  }

  #check(effect: LaneEffect): void {
    if (!("seq" in effect)) return;
    const event = this.#stored[effect.seq - 1];
    if (event === undefined) return this.#fault("unknown event", effect);
    const runs = [...this.#running.values()];
    switch (effect.type) {
      case "start":
        if (this.#closed) this.#fault("closing: starts", effect);
        if (event.misrouted) this.#fault("O1: a misrouted event starts", effect);
        if (event.state !== "ours") this.#fault("O6: starts what is not ours", effect);
        if (runs.some(({ key }) => key === event.key)) this.#fault("O2: two handlers of one key", effect);
        if (this.#completed.has(event)) this.#fault("completed: runs again", effect);
        for (const earlier of this.#stored.slice(0, event.seq - 1)) {
          if (earlier.key !== event.key || earlier.misrouted) continue;
          if (earlier.state !== "settled") this.#fault("O3: an earlier event is not settled", effect);
          if (!earlier.everStarted && !earlier.removed)
            this.#fault("O1: an earlier event never started", effect);
        }
        event.everStarted = true;
        this.#running.set(effect.run, event);
        break;
      case "ack":
        if (event.state === "settled") {
          if (!effect.again) this.#fault("O6: acks what is not ours", effect);
          break;
        }
        if (event.state !== "ours") this.#fault("O6: acks what is not ours", effect);
        if (!event.removed && !this.#ended.has(event) && !this.#completed.has(event))
          this.#fault("O3: acked before its handler had ended", effect);
        event.state = "settled";
        this.#completed.add(event);
        break;
      case "drop":
        this.#fault("drops although told to block", effect);
        break;
      case "release":
        if (event.state !== "ours") this.#fault("O6: gives back what is not ours", effect);
        if (!event.misrouted && runs.some(({ key }) => key === event.key))
          this.#fault("O2: gives an event back whose key still runs here", effect);
        if (event.state === "ours") event.state = "free";
        break;
    }
  }

  #fault(what: string, effect: LaneEffect): void {
    this.faults.push(`${what}: ${JSON.stringify(effect)}`);
  }
}
