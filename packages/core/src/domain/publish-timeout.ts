import { LanekeeperError } from "./lanekeeper-error.js";
import type { PendingPublish } from "./publish-pending.js";

/** PUBLISH_TIMEOUT, saying whether the event may have been stored. */
export function publishTimeout(publish: PendingPublish): LanekeeperError {
  const fault = publish.trouble?.fault;
  const options = fault === undefined ? undefined : { cause: fault };
  const reason = fault === undefined ? "" : `; last met: ${fault.message}`;
  return new LanekeeperError("PUBLISH_TIMEOUT", `${whatIsKnown(publish)}${reason}`, options);
}

function whatIsKnown(publish: PendingPublish): string {
  if (publish.attempts === 0) {
    return "the event was not sent in time and is not stored: the connection was down, the server's mapping could not be looked at, or earlier events of its key had no answer";
  }
  if (publish.open === 0 && publish.phase !== "event-look" && publish.trouble?.doubtful !== true) {
    return "the event is not stored: the server took none of the attempts in time";
  }
  return "the server gave no definite answer in time, so the event may be stored or not; its key goes on once that is known. The stream may be without a leader, or this user may lack permission to publish";
}

/** The same error for an event that was on its way when it arose. */
export function perhapsStored(error: LanekeeperError): LanekeeperError {
  return new LanekeeperError(
    error.code,
    `${error.message} (the event was sent before that and had no answer: it may be stored or not)`,
    { cause: error },
  );
}

/** The error, saying so if the event may be stored nevertheless. */
export function asKnown(publish: PendingPublish, error: LanekeeperError): LanekeeperError {
  return publish.open > 0 || publish.trouble?.doubtful === true ? perhapsStored(error) : error;
}
