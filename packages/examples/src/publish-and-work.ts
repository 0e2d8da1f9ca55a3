import { openLanes } from "@lanekeeper/core";
import { connect } from "@nats-io/transport-node";

type Orders = { placed: { item: string }; paid: { cents: number } };

const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
const lanes = await openLanes<Orders>(connection, { stream: "ORDERS", create: { subject: "orders" } });

await lanes.work({ group: "billing" }, async (event) => {
  if (event.type === "placed") console.log(`${event.key} ordered ${event.data.item}`);
  else console.log(`${event.key} paid ${event.data.cents} cents`);
});

const publisher = lanes.publisher();
await publisher.publish({ key: "customer-42", type: "placed", data: { item: "a kite" } });
await publisher.publish({ key: "customer-42", type: "paid", data: { cents: 1999 } });

await lanes.group("billing").caughtUp();
await lanes.close(); // Workers finish what they have in hand.
await connection.close();
