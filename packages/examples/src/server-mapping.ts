/**
 * Publishers that know nothing of lanes, in whatever language: the server puts every event in its lane.
 *
 * With mapping "stream", a publisher publishes to the intake, here `in.devices.<device>.<what>`, and the stream's
 * own subject transform picks the lane by hashing the device.
 */
import { openLanes } from "@lanekeeper/core";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

interface DeviceEvents {
  online: { version: string };
  reading: { celsius: number };
  offline: Record<string, never>;
}

const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
const lanes = await openLanes<DeviceEvents>(connection, {
  stream: "DEVICES",
  create: { subject: "devices", lanes: 16, hash: "fnv1a", mapping: "stream" },
});

await lanes.work({ group: "monitor" }, (event) => {
  console.log(`lane ${event.lane}: ${event.key} ${event.type} ${JSON.stringify(event.data)}`);
});

// Plain NATS from here: no Lanekeeper, no lane count, no hash.
const js = jetstream(connection);
for (const device of ["thermo-1", "thermo-2", "thermo-3"]) {
  await js.publish(`in.devices.${device}.online`, JSON.stringify({ version: "1.4" }));
  await js.publish(`in.devices.${device}.reading`, JSON.stringify({ celsius: 20.5 }));
  await js.publish(`in.devices.${device}.offline`, JSON.stringify({}));
}

await lanes.group("monitor").caughtUp();
await lanes.close();
await connection.close();
