/**
 * Waits until everything that is stored has been handled, and prints what the projection holds.
 *
 *     NATS_URL=nats://127.0.0.1:4222 node dist/customer-events/report.js customers.db
 */
import { connect } from "@nats-io/transport-node";
import { openCustomerLanes, PROJECTION_GROUP } from "./customer-lanes.js";
import { openDatabase } from "./database.js";
import { CustomerProjection } from "./projection.js";

const database = openDatabase(process.argv[2] ?? "customers.db");
const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
const lanes = await openCustomerLanes(connection);
await lanes.group(PROJECTION_GROUP).caughtUp();
await lanes.close();
await connection.close();

const { customers, active, events, brokenRules } = new CustomerProjection(database).totals();
database.close();
console.log(`${customers} customers, ${active} of them active`);
console.log(`${events} events, ${brokenRules} of which broke a rule`);
