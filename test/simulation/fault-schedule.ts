import type { SeededRandom } from "../harness/seeded-random.js";
import type { SimMember } from "./sim-member.js";
import type { Simulation } from "./simulation.js";

/** What can happen to a deployment. Each picks its victim when its time has come. */
type Trouble = (simulation: Simulation, random: SeededRandom, member: SimMember) => void;

const troubles: Readonly<Record<string, Trouble>> = {
  kill: (simulation, _random, member) => simulation.kill(member),
  freeze: (simulation, random, member) => {
    const { leaseMs, ackWaitMs, assignment } = simulation.scenario;
    const hold = assignment === "owned" ? leaseMs : ackWaitMs;
    simulation.freeze(member, random.chance(0.2));
    simulation.timeline.after(random.between(0.2, 2.5) * hold, () => simulation.thaw(member));
  },
  "cut off": (simulation, random, member) => {
    simulation.history.add("test", { kind: "note", text: `${member.process.name} is cut off` });
    member.link.break(random.between(20, 2 * simulation.scenario.leaseMs));
  },
  stall: (simulation, random, member) => {
    simulation.history.add("test", { kind: "note", text: `${member.process.name}'s link stalls` });
    member.link.stall(random.between(100, 2 * simulation.scenario.leaseMs));
  },
  restart: (simulation, random, member) => {
    simulation.history.add("test", { kind: "note", text: `${member.process.name} is restarted` });
    simulation.restart(member, random.chance(0.8) ? 5_000 : random.between(0, 500), random.chance(0.5));
  },
  "leader change": (simulation, random) => {
    simulation.history.add("test", { kind: "note", text: "consumers have another leader" });
    const back = simulation.scenario.server.fallsBack ? random.between(10, 100) : undefined;
    simulation.server.changeLeaders(random.between(50, 1_500), back);
  },
  election: (simulation, random) => {
    if (simulation.scenario.server.bucketReplicas === 1) return;
    simulation.history.add("test", { kind: "note", text: "the bucket elects a leader" });
    simulation.server.electBucket(random.between(500, 6_000));
  },
  "server restart": (simulation, random) => {
    if (simulation.scenario.replicas > 1) return;
    simulation.history.add("test", { kind: "note", text: "the server is killed and started again" });
    simulation.server.restart(
      random.between(100, 1_500),
      simulation.live.map(({ link }) => link),
    );
  },
  "consumer deleted": (simulation, random) => {
    if (simulation.scenario.retention === "interest") return;
    const names = [...simulation.server.consumers].map(({ name }) => name);
    if (names.length === 0 || random.chance(0.7)) return;
    const name = random.pick(names);
    simulation.history.add("test", { kind: "note", text: `somebody deletes ${name}` });
    simulation.server.deleteByHand(name);
  },
};

const names = Object.keys(troubles);

/** Plans the seed's troubles, and their end: after it nobody is frozen. */
export function planFaults(simulation: Simulation, random: SeededRandom): void {
  const { timeline, scenario } = simulation;
  for (let i = 0; i < scenario.faults; i++) {
    const trouble = troubles[random.pick(names)];
    timeline.plan(random.between(700, scenario.faultsMs), () => {
      const alive = simulation.live;
      if (alive.length > 0) trouble?.(simulation, random, random.pick(alive));
    });
  }
}
