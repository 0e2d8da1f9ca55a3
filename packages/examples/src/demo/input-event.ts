/** An event on its way into the stream. */
export interface InputEvent {
  readonly key: string;
  readonly type: string;
  /** JSON-able, or bytes that already are JSON. */
  readonly data: unknown;
  readonly place: Place;
}

/** Where an event stands among the events of its key. */
export interface Place {
  /** From 1, without gaps, in the order of the input. */
  readonly position: number;
  /** The value of the order field, where one was named. */
  readonly order?: number;
}
