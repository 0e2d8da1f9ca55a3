import { type Lanes, openLanes } from "@lanekeeper/core";
import type { NatsConnection } from "@nats-io/transport-node";
import type { CustomerEvents } from "./event.js";

/** The group of the workers that keep the projection. */
export const PROJECTION_GROUP = "projection";

/** Opens the customers' stream, and makes it if there is none: whichever process comes first. */
export function openCustomerLanes(connection: NatsConnection): Promise<Lanes<CustomerEvents>> {
  return openLanes<CustomerEvents>(connection, {
    stream: "CUSTOMERS",
    create: { subject: "customers", lanes: 32 },
  });
}
