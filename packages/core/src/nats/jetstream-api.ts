import { type JetStreamManager, type JetStreamOptions, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";

/** The JetStream API of one account or domain; every subject we build ourselves starts with `prefix`. */
export interface JetStreamApi {
  readonly prefix: string;
  /** Milliseconds a request may take; default 5,000. */
  readonly timeoutMs: number;
  readonly manager: JetStreamManager;
  /** Of the server this connection is on now. */
  serverVersion(): string;
  /** For making and changing streams: nats-server 2.10 takes seconds over one with thousands of subjects. */
  readonly patientManager: JetStreamManager;
}

/** Of the JetStream that the connected server and account have themselves. */
export const plainPrefix = "$JS.API";
const patienceMs = 30_000;

export async function jetStreamApi(
  connection: NatsConnection,
  options: JetStreamOptions = {},
): Promise<JetStreamApi> {
  const timeoutMs = options.timeout ?? 5_000;
  const manager = await jetstreamManager(connection, { ...options, checkAPI: false });
  const patientManager = await jetstreamManager(connection, {
    ...options,
    timeout: Math.max(timeoutMs, patienceMs),
    checkAPI: false,
  });
  const prefix = options.domain
    ? `$JS.${options.domain}.API`
    : (options.apiPrefix ?? plainPrefix).replace(/\.$/, "");
  const serverVersion = () => connection.info?.version ?? "unknown";
  return { prefix, timeoutMs, manager, patientManager, serverVersion };
}
