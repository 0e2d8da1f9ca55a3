/**
 * Every code a {@link LanekeeperError} can carry. Codes are stable: callers may switch on them, never on text.
 * docs/reference/errors.md explains each; a test compares the two lists.
 */
export const errorCodes = [
  // What the caller passed
  "INVALID_OPTIONS",
  "INVALID_KEY",
  "INVALID_TYPE",
  "INVALID_ID",
  "INVALID_HEADER",
  "ENCODE_FAILED",
  "PAYLOAD_TOO_LARGE",
  // What openLanes and work() found
  "SERVER_TOO_OLD",
  "JETSTREAM_UNAVAILABLE",
  "PERMISSION_DENIED",
  "REQUEST_TIMEOUT",
  "API_ERROR",
  "STREAM_NOT_FOUND",
  "BUCKET_NOT_FOUND",
  "ASSIGNMENT_DIFFERS",
  "UNSAFE_STREAM",
  "LAYOUT_MISSING",
  "LAYOUT_DIFFERS",
  "LAYOUT_CHANGED",
  "MAPPING_DIFFERS",
  "CONSUMER_DIFFERS",
  "CONSUMER_NOT_FOUND",
  "CONSUMER_OVERLAPS",
  "GROUP_RUNNING",
  "REWIND_INTERRUPTED",
  "GROUP_NOT_FOUND",
  // Publishing
  "BUFFER_FULL",
  "NO_STREAM_FOR_SUBJECT",
  "STREAM_FULL",
  "PUBLISH_REJECTED",
  "PUBLISH_TIMEOUT",
  "WRONG_LAST_SEQUENCE",
  // Handling
  "TERMINAL",
  "RETRYABLE",
  "HANDLER_FAILED",
  "HANDLER_TIMEOUT",
  "HANDLER_STUCK",
  "DECODE_FAILED",
  "SCHEMA_MISMATCH",
  "FENCED",
  "MISROUTED",
  "EVENT_LOST",
  "POISON_EVENT",
  "OBSERVER_FAILED",
  // Running
  "LOOP_BLOCKED",
  "DISCONNECTED",
  "SERVER_UNRESPONSIVE",
  "CONNECTION_CLOSED",
  "CLOSING",
  "CLOSED",
  // Testing
  "NATS_SERVER_NOT_FOUND",
  "NATS_SERVER_TOO_OLD",
  "NATS_SERVER_FAILED",
] as const;

export type ErrorCode = (typeof errorCodes)[number];
