import type { LanekeeperError } from "./lanekeeper-error.js";

/** What a search for an event in the stream found. */
export type EventSight =
  /** It is stored. */
  | { readonly type: "stored"; readonly seq: number }
  /** It is not, and what it expected of the key can never hold any more. */
  | { readonly type: "superseded" }
  | { readonly type: "absent" }
  /** `forbidden`: it never will be readable. */
  | { readonly type: "unreadable"; readonly forbidden: boolean };

/** What a look at the stream after "no responders" found. */
export type StreamSight<J> =
  | { readonly type: "missing"; readonly error: (job: J) => LanekeeperError }
  /** The stream is right. `unheard`: what it means if publishes go on meeting no responder nevertheless. */
  | { readonly type: "ok"; readonly unheard?: (job: J) => LanekeeperError }
  | { readonly type: "unreadable"; readonly error: LanekeeperError };
