import { type JetStreamManager, type JetStreamOptions, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";

/** The JetStream API of one account or domain; every subject we build ourselves starts with `prefix`. */
export interface JetStreamApi {
  readonly prefix: string;
  /** Milliseconds a request may take; default 5,000. */
  readonly timeoutMs: number;
  readonly manager: JetStreamManager;
}

export async function jetStreamApi(
  connection: NatsConnection,
  options: JetStreamOptions = {},
): Promise<JetStreamApi> {
  const manager = await jetstreamManager(connection, { ...options, checkAPI: false });
  const prefix = options.domain
    ? `$JS.${options.domain}.API`
    : (options.apiPrefix ?? "$JS.API").replace(/\.$/, "");
  return { prefix, timeoutMs: options.timeout ?? 5_000, manager };
}
