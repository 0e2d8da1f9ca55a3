/** The ways in which the demo has its input handled. */
export const MODES = ["one-at-a-time", "unordered", "lanekeeper"] as const;

export type Mode = (typeof MODES)[number];

export const MODE_TITLES: Readonly<Record<Mode, string>> = {
  "one-at-a-time": "one at a time",
  unordered: "unordered",
  lanekeeper: "Lanekeeper",
};

/** @param lanes how many events may be in flight at once, in either of the two concurrent modes */
export function modeDescription(mode: Mode, lanes: number): string {
  switch (mode) {
    case "one-at-a-time":
      return "one consumer, MaxAckPending 1: an event when the one before is done";
    case "unordered":
      return `one consumer, ${lanes} events in flight, of whichever keys`;
    case "lanekeeper":
      return `${lanes} lanes: a key's events one by one, up to ${lanes} keys side by side`;
  }
}
