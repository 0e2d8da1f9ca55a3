import { LanekeeperError } from "./lanekeeper-error.js";
import type { BatchFailure } from "./publish-batches.js";

/** What a JetStream error in answer to a publish means for the event. */
export interface PublishRefusal {
  /**
   * `refused`: this attempt was not stored and another would fare no better.
   * `not-taken`: this attempt was not stored, the next may be.
   * `unclear`: it may have been stored; only another attempt with the same id can tell (P1).
   */
  readonly type: "refused" | "not-taken" | "unclear";
  readonly error: LanekeeperError;
}

/** JetStream `err_code`s that say more than "no". */
const code = {
  accountResourcesExceeded: 10_002,
  insufficientResources: 10_023,
  memoryResourcesExceeded: 10_028,
  storageResourcesExceeded: 10_047,
  messageTooLarge: 10_054,
  wrongLastSequence: 10_071,
  storeFailed: 10_077,
  headersTooLarge: 10_097,
  idInProcess: 10_158,
  expectationNotReady: 10_163,
  wrongLastSequenceInFlight: 10_164,
  tooManyRequests: 10_167,
} as const;

/**
 * @param guarded whether the event carries expectLastSeq
 * @param subject the subject it was published to, for the message
 */
export function publishRefusal(
  answer: { status: number; code: number; description: string },
  guarded: boolean,
  subject: string,
): PublishRefusal {
  const text = `"${subject}": the server said "${answer.description}" (JetStream error ${answer.code})`;
  switch (answer.code) {
    case code.wrongLastSequence:
      if (!guarded) break;
      return refused(
        "WRONG_LAST_SEQUENCE",
        `${text}: the key has another last sequence than expectLastSeq; read the key's events again and decide anew`,
      );
    case code.messageTooLarge:
    case code.headersTooLarge:
      return refused("PAYLOAD_TOO_LARGE", `${text}; raise the stream's max_msg_size or send less`);
    case code.accountResourcesExceeded:
    case code.memoryResourcesExceeded:
    case code.storageResourcesExceeded:
      return refused("STREAM_FULL", `${text}; the account's JetStream limit is reached`);
    case code.storeFailed:
      if (isLimit(answer.description)) {
        return refused(
          "STREAM_FULL",
          `${text}; the stream is at its limit: raise it, or let events be handled and removed`,
        );
      }
      return { type: "unclear", error: unsettled(text) };
    case code.insufficientResources:
    case code.idInProcess:
    case code.expectationNotReady:
    case code.wrongLastSequenceInFlight:
    case code.tooManyRequests:
      return { type: "not-taken", error: unsettled(text) };
  }
  if (answer.status === 503) return { type: "unclear", error: unsettled(text) };
  return refused("PUBLISH_REJECTED", text);
}

/** Refusals of an atomic batch that come before any of it is stored, and after which none of it will be (ADR 0012). */
const batchRefusals: ReadonlySet<number> = new Set([
  code.messageTooLarge,
  code.headersTooLarge,
  10_174, // not enabled on the stream
  10_175, // an event without its sequence
  10_176, // incomplete, or abandoned
  10_177, // a header that batches may not have
  10_179, // invalid batch id
  10_199, // more events than the server takes
  10_200, // invalid commit
  10_201, // the id of one of them is known
  10_210, // too many batches open
]);

/** What a JetStream error in answer to an atomic batch means for its events. */
export function batchFailure(answer: { status: number; code: number; description: string }): BatchFailure {
  if (batchRefusals.has(answer.code)) return "none";
  if (answer.code === code.storeFailed && isLimit(answer.description)) return "none";
  return publishRefusal(answer, false, "").type === "unclear" ? "unclear" : "part";
}

/** The limits of "discard: new" come under `storeFailed`, beside real failures of the store. */
function isLimit(description: string): boolean {
  return /^maximum (messages|bytes)/.test(description);
}

function refused(name: ConstructorParameters<typeof LanekeeperError>[0], message: string): PublishRefusal {
  return { type: "refused", error: new LanekeeperError(name, message) };
}

function unsettled(text: string): LanekeeperError {
  return new LanekeeperError("PUBLISH_REJECTED", text);
}
