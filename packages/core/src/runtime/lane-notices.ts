import { LanekeeperError } from "../domain/lanekeeper-error.js";

/** A delivery that was too long on its way to be known as ours (O6). */
export function staleDelivery(seq: number): LanekeeperError {
  const text = `event ${seq} arrived so late that the server may have given it to another worker; it is left to come again`;
  return new LanekeeperError("FENCED", text);
}

/** A handler that goes on though its signal was aborted. */
export function handlerStuck({
  key,
  ageMs,
}: {
  readonly key: string;
  readonly ageMs: number;
}): LanekeeperError {
  const text = `the handler of key "${key}" has run for ${Math.round(ageMs)} ms and ignores its signal`;
  return new LanekeeperError("HANDLER_STUCK", text);
}

/** An event that was found to kill its process. */
export function poisonEvent(key: string, seq: number): LanekeeperError {
  const text = `event ${seq} of key "${key}" has killed its process again and again; it is held, and its key waits behind it`;
  return new LanekeeperError("POISON_EVENT", text);
}
