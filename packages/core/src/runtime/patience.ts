import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { type Clock, pause } from "./clock.js";

/** An election of a replicated stream or bucket takes 4 to 9 s. */
const patienceMs = 15_000;
const againMs = 200;

/** Asks again while nobody answers, as during an election. Rejects with the last error after 15 s, at once with any other. */
export async function patiently<T>(clock: Clock, ask: () => Promise<T>): Promise<T> {
  const deadline = clock.now() + patienceMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const unanswered =
        LanekeeperError.is(error) &&
        (error.code === "REQUEST_TIMEOUT" || error.code === "JETSTREAM_UNAVAILABLE");
      if (!unanswered || clock.now() >= deadline) throw error;
      await pause(clock, againMs);
    }
  }
}
