import { customerHistories } from "../customer-events/customer-histories.js";
import type { InputEvent } from "./input-event.js";
import type { KeySequences } from "./key-sequences.js";

/** The input of a demo that was given none: customers' histories, the same for the same seed. */
export function* generatedEvents(
  events: number,
  seed: number,
  sequences: KeySequences,
): Generator<InputEvent, void, undefined> {
  for (const { key, type, data } of customerHistories({ events, seed })) {
    yield { key, type, data, place: sequences.place(key) };
  }
}
