import { JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "@nats-io/nats-core";
import { LanekeeperError } from "../domain/lanekeeper-error.js";

/** JetStream's own error codes (`err_code`), where Lanekeeper decides by them. */
export const apiCode = {
  consumerNotFound: 10014,
  tooManyConsumers: 10026,
  consumerExists: 10148,
  consumerNameInUse: 10013,
  workQueueNotUnique: 10100,
  workQueueNotDeliverAll: 10101,
  streamNotFound: 10059,
  streamNameInUse: 10058,
  noMessageFound: 10037,
  leaderless: 10008,
} as const;

/** The `err_code` of a JetStream API refusal; undefined for anything else. */
export function apiCodeOf(error: unknown): number | undefined {
  return error instanceof JetStreamApiError ? error.code : undefined;
}

/** Whether no leader has answered yet, so that another may; without JetStream at all there is nothing to wait for. */
export function isLeaderless(error: unknown): boolean {
  return error instanceof errors.TimeoutError || apiCodeOf(error) === apiCode.leaderless;
}

/** Says in Lanekeeper's terms what a JetStream API request met. `what` names the request: "reading stream ORDERS". */
export function translateApiError(error: unknown, what: string): LanekeeperError {
  if (LanekeeperError.is(error)) return error;
  const options = { cause: error };
  const code = apiCodeOf(error);
  const text = error instanceof Error ? error.message : String(error);
  if (code === apiCode.streamNotFound) {
    return new LanekeeperError("STREAM_NOT_FOUND", `${what}: the stream does not exist`, options);
  }
  if (code === apiCode.consumerNotFound) {
    return new LanekeeperError("CONSUMER_NOT_FOUND", `${what}: the consumer does not exist`, options);
  }
  if (code === apiCode.leaderless || isNotEnabled(error)) {
    return new LanekeeperError(
      "JETSTREAM_UNAVAILABLE",
      `${what}: no JetStream server answered; it may be starting or electing a leader, or JetStream is not enabled for this account`,
      options,
    );
  }
  if (code === apiCode.tooManyConsumers) {
    const limit =
      "the stream has as many consumers as it may have; raise its max_consumers (a group takes one a lane)";
    return new LanekeeperError("API_ERROR", `${what}: ${limit}`, options);
  }
  if (code !== undefined)
    return new LanekeeperError("API_ERROR", `${what}: ${text} (JetStream error ${code})`, options);
  if (error instanceof errors.TimeoutError) {
    return new LanekeeperError("REQUEST_TIMEOUT", `${what}: no answer within the request timeout`, options);
  }
  if (isPermissionViolation(error)) {
    return new LanekeeperError("PERMISSION_DENIED", `${what}: ${text}; grant this user the subject`, options);
  }
  if (error instanceof errors.ClosedConnectionError || error instanceof errors.DrainingConnectionError) {
    return new LanekeeperError("CONNECTION_CLOSED", `${what}: the connection is closed`, options);
  }
  return new LanekeeperError("API_ERROR", `${what}: ${text}`, options);
}

/** The client says "not enabled" for every request that met no responder; it does not export the class. */
function isNotEnabled(error: unknown): boolean {
  return error instanceof Error && error.name === "JetStreamNotEnabled";
}

function isPermissionViolation(error: unknown): boolean {
  if (error instanceof errors.PermissionViolationError) return true;
  return error instanceof Error && error.cause !== undefined && isPermissionViolation(error.cause);
}
