import type { LaneRunner } from "./lane-runner.js";
import type { StreamPort } from "./stream-port.js";

const lookMs = 5_000;

/** Looks now and then whether events that wait for somebody (blocked, misrouted) were removed from the stream. */
export class StuckWatch {
  readonly #stream: StreamPort;
  #lookedAt: number;
  #looking = false;

  constructor(stream: StreamPort, now: number) {
    this.#stream = stream;
    this.#lookedAt = now;
  }

  tick(now: number, runners: readonly LaneRunner[]): void {
    // While the server is slow to answer, looks must not pile up.
    if (this.#looking || now - this.#lookedAt < lookMs) return;
    this.#lookedAt = now;
    this.#looking = true;
    void this.#look(runners).finally(() => {
      this.#looking = false;
    });
  }

  async #look(runners: readonly LaneRunner[]): Promise<void> {
    for (const runner of runners) {
      for (const { seq } of runner.stuck()) {
        try {
          if (!(await this.#stream.holds(seq))) runner.gone(seq);
        } catch {
          // Not known; the next look may tell.
        }
      }
    }
  }
}
