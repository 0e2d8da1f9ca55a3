type HeldState = "queued" | "running" | "waiting" | "refused";

/** One key of a lane: it is there as long as events of it are held or a handler of it runs. */
export interface KeyLine {
  readonly key: string;
  /** Its held events in order; the first is the one that may run. */
  readonly events: HeldEvent[];
  /** A handler of the key runs here, though its event may have been taken from the lane. */
  busy: boolean;
}

/** An event in a lane's hands: delivered and not settled. */
export interface HeldEvent {
  readonly seq: number;
  readonly line: KeyLine;
  readonly stamp: string;
  state: HeldState;
  failures: number;
  blocked: boolean;
  misrouted: boolean;
  dueAt: number;
  run: number;
}

/** Waits for its turn, with no run yet. */
export function newHeldEvent(seq: number, line: KeyLine, stamp: string): HeldEvent {
  return {
    seq,
    line,
    stamp,
    state: "queued",
    failures: 0,
    blocked: false,
    misrouted: false,
    dueAt: 0,
    run: 0,
  };
}

/** A redelivery may bring an earlier event of the key after later ones: it goes in front of what has not started (O1). */
export function insertInOrder(queue: HeldEvent[], held: HeldEvent): void {
  let index = queue.length;
  while (index > 0 && (queue[index - 1] as HeldEvent).seq > held.seq) index--;
  queue.splice(index, 0, held);
}
