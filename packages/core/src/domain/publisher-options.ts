import { type Codec, jsonCodec } from "./codec.js";
import { OptionFaults, show } from "./option-faults.js";

export interface PublisherOptions {
  /** Turns `data` into payload bytes. Default {@link jsonCodec}. */
  codec?: Codec;
  /**
   * Milliseconds from the call of `publish()` to a definite answer; then the promise rejects with PUBLISH_TIMEOUT.
   * From 100 to just below the stream's duplicate window: later than that, the same event sent again could be
   * stored twice (P1). Default 30,000.
   */
  timeoutMs?: number;
  /** Events in the buffer, sent or not; 1 to 1,000,000, default 65,536. One more rejects with BUFFER_FULL. */
  maxPending?: number;
  /** Their payloads, subjects and headers together, in bytes; at least 1, default 64 MiB. */
  maxPendingBytes?: number;
}

export type ResolvedPublisherOptions = Readonly<Required<PublisherOptions>>;

const known = ["codec", "timeoutMs", "maxPending", "maxPendingBytes"] as const;

/**
 * Defaults filled in, frozen.
 *
 * @param duplicateWindowMs the stream's duplicate window, as found at open
 * @throws LanekeeperError INVALID_OPTIONS with every fault
 */
export function resolvePublisherOptions(
  options: PublisherOptions,
  duplicateWindowMs: number,
): ResolvedPublisherOptions {
  const faults = new OptionFaults("publisher() options");
  const given: unknown = options;
  if (typeof given !== "object" || given === null) {
    faults.add(`they must be an object, not ${show(given)}`);
    faults.throwIfAny();
  }
  faults.unknown(options, known);
  const codec = options.codec ?? jsonCodec;
  if (typeof codec !== "object" || typeof codec.encode !== "function" || typeof codec.decode !== "function") {
    faults.add(`codec must be an object with encode and decode, not ${show(codec)}`);
  }
  const timeoutMs = faults.number("timeoutMs", options.timeoutMs, 30_000, { min: 100, max: 3_600_000 });
  if (timeoutMs >= duplicateWindowMs) {
    faults.add(
      `timeoutMs (${timeoutMs}) must be below the stream's duplicate window (${duplicateWindowMs} ms), because an event sent again after the window could be stored twice; lower timeoutMs or raise the stream's duplicate_window`,
    );
  }
  const maxPending = faults.number("maxPending", options.maxPending, 65_536, { min: 1, max: 1_000_000 });
  const maxPendingBytes = faults.number("maxPendingBytes", options.maxPendingBytes, 64 * 1024 * 1024, {
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
  });
  faults.throwIfAny();
  return Object.freeze({ codec, timeoutMs, maxPending, maxPendingBytes });
}
