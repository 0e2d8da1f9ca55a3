import {
  encodeKey,
  intakeSubject,
  type LaneLayout,
  laneOf,
  laneRoot,
  layoutIntake,
} from "@lanekeeper/partitioner";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { MappingProbe, PublishPort } from "./publish-port.js";

/**
 * Asks the server where its `mappings` put keys, and compares with the layout. MAPPING_DIFFERS when another lane
 * comes out, which would break the order of every key; undefined when all agree or nothing can be seen (no mapping,
 * no permission); "unknown" when the server was not heard.
 */
export async function mappingFault(
  layout: LaneLayout,
  port: PublishPort,
  timeoutMs: number,
): Promise<LanekeeperError | undefined | "unknown"> {
  const probes = probeKeys.map((key) => probeOf(layout, key));
  const seen = await port.probe(probes, timeoutMs);
  if (seen === undefined) return "unknown";
  for (const [index, subject] of seen.entries()) {
    const key = probeKeys[index];
    if (subject === undefined || key === undefined) continue;
    const wanted = `${laneRoot(layout)}.${laneOf(key, layout.lanes, layout.hash)}.${encodeKey(key)}.`;
    if (!subject.startsWith(wanted)) {
      return new LanekeeperError(
        "MAPPING_DIFFERS",
        `the server maps "${probes[index]?.intake}" to "${subject}", and the layout needs "${wanted}…"; put the layout's mapping into nats-server.conf and reload. Nothing is published until then`,
      );
    }
  }
  return undefined;
}

/** A mapping with twice the lanes agrees on half of all keys, hence so many. */
const probeKeys = Array.from({ length: 16 }, (_, index) => `lanekeeper-probe-${index}`);

function probeOf(layout: LaneLayout, key: string): MappingProbe {
  const { typeWildcards, typeTail } = layoutIntake(layout);
  const tokens = Math.max(typeWildcards.length + (typeTail ? 1 : 0), 1);
  const type = Array.from({ length: tokens }, () => "lanekeeper-probe").join(".");
  return {
    intake: intakeSubject(layout, { key, type }),
    filter: `${laneRoot(layout)}.*.${encodeKey(key)}.>`,
  };
}
