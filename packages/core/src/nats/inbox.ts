import { createInbox, type NatsConnection } from "@nats-io/nats-core";

/** A new reply subject under the connection's own inbox prefix, which its permissions may be bound to. */
export function newInbox(connection: NatsConnection): string {
  // The client has the option but leaves it out of the interface.
  const { options } = connection as NatsConnection & { options?: { inboxPrefix?: string } };
  return createInbox(options?.inboxPrefix);
}

/** Any number of inboxes for the price of one: a random part for all, and a number for each. */
export function inboxes(connection: NatsConnection): () => string {
  const prefix = newInbox(connection);
  let last = 0;
  return () => `${prefix}-${++last}`;
}
