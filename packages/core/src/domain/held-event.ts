type HeldState = "queued" | "running" | "waiting" | "refused";

/** An event in a lane's hands: delivered and not settled. */
export interface HeldEvent {
  readonly seq: number;
  readonly key: string;
  readonly stamp: string;
  state: HeldState;
  failures: number;
  blocked: boolean;
  misrouted: boolean;
  dueAt: number;
  run: number;
}

/** Waits for its turn, with no run yet. */
export function newHeldEvent(seq: number, key: string, stamp: string): HeldEvent {
  return {
    seq,
    key,
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
