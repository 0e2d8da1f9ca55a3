import type { Place } from "./input-event.js";

/** An event as a demo worker gets it, in whichever mode. */
export interface Delivery {
  readonly key: string;
  readonly type: string;
  readonly data: unknown;
  /** The stream sequence. */
  readonly seq: number;
  readonly place: Place;
}

const POSITION = "Demo-Position";
const ORDER = "Demo-Order";

/** The headers that carry an event's place through the stream, for the demo's own book-keeping. */
export function placeHeaders(place: Place): Record<string, string> {
  const { position, order } = place;
  return { [POSITION]: String(position), ...(order === undefined ? {} : { [ORDER]: String(order) }) };
}

/** @param header gives a header's value, or an empty string where there is none */
export function placeOf(header: (name: string) => string): Place {
  const order = header(ORDER);
  const position = Number(header(POSITION));
  return order === "" ? { position } : { position, order: Number(order) };
}
