import type { Place } from "./input-event.js";
import type { OrderValue } from "./order-value.js";

export interface SequenceReport {
  readonly keys: number;
  readonly events: number;
  /** Events whose order value is lower than that of the key's event before them. */
  readonly backwards: number;
  /** Events whose order value is that of the key's event before them. */
  readonly repeats: number;
  /** Events whose order value, a whole number, is more than one above that of the key's event before them. */
  readonly gaps: number;
  /** The first event that went backwards or repeated, in words. */
  readonly firstFault?: string;
}

/**
 * Gives every event of an input its place among those of its key, and checks the input's own order on the way.
 * Holds two numbers per key, and nothing per event.
 */
export class KeySequences {
  readonly #last = new Map<string, { position: number; order: OrderValue | undefined }>();
  #events = 0;
  #backwards = 0;
  #repeats = 0;
  #gaps = 0;
  #firstFault: string | undefined;

  /**
   * @param order the event's order value, where an order field was named
   * @param where the event's place in the input, for the report
   */
  place(key: string, order?: OrderValue, where?: string): Place {
    this.#events++;
    const last = this.#last.get(key);
    const position = (last?.position ?? 0) + 1;
    this.#last.set(key, { position, order });
    if (order === undefined) return { position };
    if (last?.order !== undefined) this.#check(key, last.order, order, where);
    return { position, order: order.value };
  }

  report(): SequenceReport {
    return {
      keys: this.#last.size,
      events: this.#events,
      backwards: this.#backwards,
      repeats: this.#repeats,
      gaps: this.#gaps,
      ...(this.#firstFault === undefined ? {} : { firstFault: this.#firstFault }),
    };
  }

  #check(key: string, before: OrderValue, order: OrderValue, where?: string): void {
    const { value } = order;
    const previous = before.value;
    if (value > previous) {
      if (order.counts && before.counts && value > previous + 1) this.#gaps++;
      return;
    }
    if (value < previous) this.#backwards++;
    else this.#repeats++;
    this.#firstFault ??= `${where === undefined ? "" : `${where}: `}${JSON.stringify(key)} has ${value} after ${previous}`;
  }
}
