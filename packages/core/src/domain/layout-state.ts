import { type LaneLayout, layoutConfig, layoutFromMetadata } from "@lanekeeper/partitioner";
import { LanekeeperError } from "./lanekeeper-error.js";

/** The parts of a stream's configuration that hold its layout. */
export interface LayoutCarrier {
  readonly subjects: readonly string[];
  readonly transform: { readonly src: string; readonly dest: string } | undefined;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Compares a stream with the layout this process works by. Undefined: it is still the same (O8). Otherwise the fault:
 * LAYOUT_CHANGED when the stream is a generation ahead, LAYOUT_DIFFERS when metadata is gone, damaged, older, or
 * changed under the same generation, or when subjects or transform no longer carry it.
 */
export function layoutFault(layout: LaneLayout, carrier: LayoutCarrier): LanekeeperError | undefined {
  let found: LaneLayout | undefined;
  try {
    found = layoutFromMetadata(carrier.metadata);
  } catch (cause) {
    return new LanekeeperError(
      "LAYOUT_DIFFERS",
      `the stream's layout metadata is damaged: ${String(cause)}`,
      { cause },
    );
  }
  if (found === undefined) {
    return differs(
      "the stream's lanekeeper.* metadata is gone; a configuration tool may have applied a file without it",
    );
  }
  if (found.generation > layout.generation) {
    return new LanekeeperError(
      "LAYOUT_CHANGED",
      `the stream is at layout generation ${found.generation}, this process at ${layout.generation}; restart it to follow`,
    );
  }
  if (found.generation < layout.generation) {
    return differs(
      `the stream's layout went back from generation ${layout.generation} to ${found.generation}; an old configuration file was applied again`,
    );
  }
  const changed = layoutFields.filter((field) => found[field] !== layout[field]);
  if (changed.length > 0) {
    const list = changed
      .map((field) => `${field} ${String(layout[field])} → ${String(found[field])}`)
      .join(", ");
    return differs(`the stream's layout was changed without a new generation: ${list}`);
  }
  return carrierFault(layout, carrier);
}

const layoutFields = ["subject", "generation", "lanes", "hash", "mapping", "intake"] as const;

/** Whether subjects and transform are those the layout needs; metadata is not looked at. */
export function carrierFault(layout: LaneLayout, carrier: LayoutCarrier): LanekeeperError | undefined {
  const wanted = layoutConfig(layout);
  const present = new Set(carrier.subjects);
  const missing = wanted.subjects.filter((subject) => !present.has(subject));
  if (missing.length > 0) {
    return differs(
      `the stream lacks ${missing.length} of the layout's subjects (${missing.slice(0, 3).join(", ")}${missing.length > 3 ? ", …" : ""})`,
    );
  }
  const transform = layout.mapping === "stream" ? wanted.transform : undefined;
  if (transform?.src !== carrier.transform?.src || transform?.dest !== carrier.transform?.dest) {
    const text = (t: LayoutCarrier["transform"]) => (t === undefined ? "none" : `${t.src} → ${t.dest}`);
    return differs(
      `the stream's subject transform is ${text(carrier.transform)}, the layout needs ${text(transform)}`,
    );
  }
  return undefined;
}

function differs(what: string): LanekeeperError {
  return new LanekeeperError(
    "LAYOUT_DIFFERS",
    `${what}; nothing is published or handled until the stream's subjects, transform and lanekeeper.* metadata are restored`,
  );
}
