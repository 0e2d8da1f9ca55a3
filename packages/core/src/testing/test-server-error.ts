/** What can go wrong while a nats-server is found, fetched or started for tests. */
export type TestServerErrorCode =
  /** No source had a usable nats-server; the message lists every source and its reason. */
  | "NATS_SERVER_NOT_FOUND"
  /** The nats-server that was named explicitly is older than 2.10; the message has its version and path. */
  | "NATS_SERVER_TOO_OLD"
  /** A server was started and did not become ready in time; the message has the tail of its log. */
  | "NATS_SERVER_NOT_READY";

/** Callers go by `code`; the text is for people. */
export class TestServerError extends Error {
  readonly code: TestServerErrorCode;

  constructor(code: TestServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TestServerError";
    this.code = code;
  }
}
