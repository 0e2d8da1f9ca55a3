import type { Fence } from "../domain/event.js";
import type { SettledMemory } from "../domain/lane-machine.js";
import type { Delivery } from "./lane-feed-port.js";

/** How long a delivered event may be taken to be ours. */
export interface EventHold {
  /** Nothing may be done under this hold any more (O6). */
  lapsed(now: number, wall: number): boolean;
  /** Whether it is time for another in-progress. */
  wantsWorking(now: number): boolean;
  workingSent(now: number): void;
  /** An in-progress sent at that moment was confirmed by the server. */
  confirmed(sentAt: number, sentWall: number): void;
}

/** What differs between a lane that every worker pulls and one that this worker owns. */
export interface LanePolicy {
  readonly memory: SettledMemory;
  newHold(): EventHold;
  /** What to say of an event whose hold has lapsed while its handler ran. */
  lapseText(seq: number): string;
  /** When one hold has lapsed: is it that event's alone, or is the whole lane no longer ours? */
  readonly lapses: "event" | "lane";
  /** Whether events given back are told to the consumer; otherwise the next owner finds them unsettled. */
  readonly tellsReleases: boolean;
  /** What the handler gets to prove that its hold is current. */
  fence(delivery: Delivery, incarnation: string): Fence;
  /** False when the delivery breaks the run (O5): it is not looked at, and whoever owns the lane rewinds it. */
  accepts(delivery: Delivery): boolean;
  /** Something of the lane was let go because its hold had lapsed: what is delivered next does not join on to it (O5). */
  letGo(): void;
  isPoison(seq: number): boolean;
  /** Calls `begin` when the event may start: at once, or when it may run alone. */
  beforeStart(seq: number, begin: () => void): void;
  /** The event's handler has ended, or (`ran` false) was not called after all. */
  afterEnd(seq: number, ran: boolean): void;
}
