import type { SlotRequest } from "../domain/slot-queue.js";
import type { DeliveredEvent } from "./delivered-event.js";
import type { HandlerRun } from "./handler-run.js";
import type { Turn } from "./lane-host.js";

/** What a lane does on the way of a run. */
export interface RunSteps {
  /** A handler slot is the run's. */
  granted(run: LaneRun): void;
  /** Its handler may be called. `later`: not at the moment of the grant. */
  turn(run: LaneRun, handler: HandlerRun, event: DeliveredEvent, later: boolean): void;
}

/**
 * One start of an event's handler, from the machine's wish on. It is its own request for a slot and for a turn: there is
 * one for each event, and closures for each step would cost more than the steps.
 *
 * - `gated`: before its turn to run alone. `queued`: waits for a slot. `taken`: will not begin, though its slot is still
 *   to come. `begun`: has its slot.
 */
export class LaneRun implements SlotRequest, Turn {
  readonly seq: number;
  readonly number: number;
  readonly retries: number;
  state: "gated" | "queued" | "taken" | "begun" = "gated";
  readonly #steps: RunSteps;
  #handler: HandlerRun | undefined;
  #event: DeliveredEvent | undefined;

  constructor(steps: RunSteps, seq: number, number: number, retries: number) {
    this.#steps = steps;
    this.seq = seq;
    this.number = number;
    this.retries = retries;
  }

  begin(handler: HandlerRun, event: DeliveredEvent): void {
    this.#handler = handler;
    this.#event = event;
  }

  grant(): void {
    this.#steps.granted(this);
  }

  take(later: boolean): void {
    const handler = this.#handler;
    const event = this.#event;
    if (handler !== undefined && event !== undefined) this.#steps.turn(this, handler, event, later);
  }
}
