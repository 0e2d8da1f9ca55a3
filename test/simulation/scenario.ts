import type { StreamSnapshot } from "../../packages/core/src/runtime/stream-port.js";
import { SeededRandom } from "../harness/seeded-random.js";
import type { NetworkRules } from "./sim-link.js";
import type { PortRules } from "./sim-ports.js";
import type { ServerRules } from "./sim-server.js";

/** What a handler does with an event. */
export interface HandlerPlan {
  readonly ms: number;
  /** Attempts that fail. */
  readonly failures: number;
  /** Goes on though its signal is aborted. */
  readonly stubborn: boolean;
}

export interface Scenario {
  readonly seed: number;
  readonly assignment: "owned" | "shared";
  readonly retention: StreamSnapshot["retention"];
  readonly replicas: number;
  readonly lanes: number;
  readonly keys: number;
  readonly events: number;
  readonly processes: number;
  readonly maxAckPending: number;
  readonly concurrency: number;
  readonly ackWaitMs: number;
  readonly leaseMs: number;
  readonly onExhausted: "block" | "drop";
  readonly startNew: boolean;
  /** Milliseconds for which faults happen. */
  readonly faultsMs: number;
  readonly faults: number;
  readonly slowHandlers: number;
  readonly failingHandlers: number;
  readonly stubbornHandlers: number;
  /** The sequence of an event whose handler kills its process, every time. */
  readonly poison: number | undefined;
  readonly network: NetworkRules;
  readonly server: ServerRules;
  readonly ports: PortRules;
}

/** A small world with its troubles, out of one number. */
export function scenarioOf(seed: number): Scenario {
  const random = new SeededRandom(seed);
  const assignment = random.chance(0.15) ? "shared" : "owned";
  const replicas = random.chance(0.5) ? 3 : 1;
  const wish = random.next();
  const retention = wish < 0.6 ? "limits" : wish < 0.85 || replicas > 1 ? "workqueue" : "interest";
  const maxAckPending = assignment === "shared" || random.chance(0.3) ? 1 : random.int(2, 12);
  const maybe = (chance: number, low: number, high: number) =>
    random.chance(chance) ? random.between(low, high) : 0;
  const scenario: Omit<Scenario, "poison"> = {
    seed,
    assignment,
    replicas,
    retention,
    lanes: random.int(3, 8),
    keys: random.int(4, 24),
    events: random.int(20, 60),
    processes: random.int(2, 4),
    maxAckPending,
    concurrency: random.chance(0.3) ? random.int(1, 4) : 256,
    ackWaitMs: random.int(1_000, 4_000),
    leaseMs: random.int(1_000, 2_500),
    onExhausted: random.chance(0.3) ? "drop" : "block",
    startNew: retention === "limits" && random.chance(0.15),
    faultsMs: random.int(3_000, 7_000),
    faults: random.int(1, 7),
    slowHandlers: maybe(0.5, 0.02, 0.2),
    failingHandlers: maybe(0.4, 0.02, 0.2),
    stubbornHandlers: maybe(0.2, 0.05, 0.5),
    network: {
      fastest: 0.1,
      slowest: random.between(0.5, 5),
      pauseChance: maybe(0.4, 0.001, 0.02),
      longestPause: random.between(50, 1_500),
    },
    server: {
      lostDelivery: maybe(0.4, 0.01, 0.08),
      lostWithSubscription: 0.5,
      fallsBack: random.chance(0.4),
      lostAck: maybe(0.3, 0.01, 0.1),
      lostAnswer: maybe(0.4, 0.01, 0.08),
      bucketReplicas: replicas,
    },
    ports: {
      timeoutMs: random.int(500, 2_000),
      watchLagMs: random.chance(0.3) ? random.int(100, 6_000) : 50,
      silentWatch: maybe(0.3, 0.005, 0.03),
    },
  };
  const poison = assignment === "owned" && random.chance(0.06) ? random.int(1, 15) : undefined;
  return { ...scenario, poison };
}
