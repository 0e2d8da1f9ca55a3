import { show } from "./option-faults.js";

/**
 * Why a name cannot be a group's: it becomes part of consumer names, so it is 1 to 64 of A–Z, a–z, 0–9, "_" and "-",
 * in which no two groups can meet (see {@link laneConsumerName}).
 */
export function groupNameFault(name: unknown): string | undefined {
  if (typeof name === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(name)) return undefined;
  return `group must be 1 to 64 characters out of A-Z, a-z, 0-9, "_" and "-", not ${show(name)}`;
}

/** The durable of a lane: `lk-<group>-g<generation>-<lane>`. Read from its end it is unambiguous, so groups never share one. */
export function laneConsumerName(group: string, generation: number, lane: number): string {
  return `lk-${group}-g${generation}-${lane}`;
}

/** The consumer of an owned lane: a shared one's name and the epoch of the claim it was made under, `-e<epoch>`. */
export function ownedConsumerName(group: string, generation: number, lane: number, epoch: number): string {
  return `${laneConsumerName(group, generation, lane)}-e${epoch}`;
}

/** The epoch in the name of an owned lane's consumer; undefined for other names. */
export function ownedConsumerEpoch(name: string): number | undefined {
  const found = /-g\d+-\d+-e(\d+)$/.exec(name);
  return found === null ? undefined : Number(found[1]);
}
