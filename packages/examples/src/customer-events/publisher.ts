/**
 * Publishes histories of customers.
 *
 *     NATS_URL=nats://127.0.0.1:4222 node dist/customer-events/publisher.js [events] [seed]
 */
import { connect } from "@nats-io/transport-node";
import { customerHistories } from "./customer-histories.js";
import { openCustomerLanes } from "./customer-lanes.js";

const events = Number(process.argv[2] ?? 1_000);
const seed = Number(process.argv[3] ?? 1);

const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
const lanes = await openCustomerLanes(connection);
const publisher = lanes.publisher();
const failures: unknown[] = [];
let published = 0;

for (const event of customerHistories({ events, seed })) {
  // Not awaited one by one: the publisher keeps each customer's events in the order of these calls.
  publisher.publish(event).then(
    () => published++,
    (error) => failures.push(error),
  );
  await publisher.ready();
}
await publisher.close();
await lanes.close();
await connection.close();

console.log(`published ${published} events`);
if (failures.length > 0) throw new AggregateError(failures, `${failures.length} events were not published`);
