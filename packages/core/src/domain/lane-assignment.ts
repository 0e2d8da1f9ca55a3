/** Which live member has each lane now; undefined where nobody has it. */
export type LaneOwners = readonly (string | undefined)[];

/**
 * Who is to have each lane: balanced to within one lane, with the fewest moves from `owners`, and the same answer for
 * the same input in every process. Lanes of members that are not in `members` count as free. Pure.
 *
 * @param members ids of the members that take part; no order needed. None: every lane is left free.
 */
export function assignLanes(members: readonly string[], owners: LaneOwners): (string | undefined)[] {
  if (members.length === 0) return owners.map(() => undefined);
  const held = new Map<string, number[]>([...new Set(members)].sort().map((member) => [member, []]));
  for (const [lane, owner] of owners.entries()) {
    if (owner !== undefined) held.get(owner)?.push(lane);
  }
  const quotas = laneQuotas(held, owners.length);
  const target: (string | undefined)[] = owners.map(() => undefined);
  for (const [member, lanes] of held) {
    for (const lane of lanes.slice(0, quotas.get(member) ?? 0)) target[lane] = member;
  }
  const free = target.flatMap((owner, lane) => (owner === undefined ? [lane] : []));
  for (const [member, lanes] of held) {
    const missing = Math.max((quotas.get(member) ?? 0) - lanes.length, 0);
    for (const lane of free.splice(0, missing)) target[lane] = member;
  }
  return target;
}

/** Everyone gets the same number of lanes; the odd ones stay with those who hold most, so that fewest move. */
function laneQuotas(held: ReadonlyMap<string, readonly number[]>, lanes: number): Map<string, number> {
  const base = Math.floor(lanes / held.size);
  const odd = lanes % held.size;
  const byLoad = [...held].sort(([a, x], [b, y]) => y.length - x.length || (a < b ? -1 : 1));
  return new Map(byLoad.map(([member], place) => [member, place < odd ? base + 1 : base]));
}
