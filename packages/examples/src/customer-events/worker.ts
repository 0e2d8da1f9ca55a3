/**
 * Keeps the projection. Run as many as you like; they share the customers, and the database file.
 *
 *     NATS_URL=nats://127.0.0.1:4222 node dist/customer-events/worker.js customers.db
 *
 * SIGTERM and SIGINT have it finish what is in hand and end. LEASE_MS is how long the lanes of a worker that was
 * killed wait before others take them over.
 */
import { connect } from "@nats-io/transport-node";
import { openCustomerLanes, PROJECTION_GROUP } from "./customer-lanes.js";
import { inTransaction, openDatabase } from "./database.js";
import { CustomerProjection } from "./projection.js";

const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());

const database = openDatabase(process.argv[2] ?? "customers.db");
const projection = new CustomerProjection(database);
const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
const lanes = await openCustomerLanes(connection);

const worker = await lanes.work(
  {
    group: PROJECTION_GROUP,
    maxAckPending: 16,
    leaseMs: Number(process.env["LEASE_MS"] ?? 5_000),
    signal: stop.signal,
    onNotification: ({ type, error }) => {
      if (error !== undefined) console.error(`${type}: ${error.message}`);
    },
  },
  (event, context) => {
    const projected = inTransaction(database, () => projection.apply(event, context.fence.incarnation));
    if (projected.applied && projected.broken !== undefined) {
      console.log(`${event.key}: ${projected.broken} (event ${event.seq})`);
    }
  },
);
console.log("working");

const reason = await worker.closed;
await lanes.close();
await connection.close();
database.close();
if (reason.type !== "closed") throw reason.error;
console.log("closed");
