/**
 * Ending in good order: the application takes the signals, Lanekeeper never does.
 *
 * At SIGTERM or SIGINT the worker takes no more events, finishes those in hand and confirms their acks, so that
 * nothing is handled twice by the worker that comes next. What is not done within the grace is cut short: its
 * `context.signal` is aborted, and the event comes again elsewhere. Keep the grace below what the platform gives
 * before it kills (Kubernetes: terminationGracePeriodSeconds, 30 s by default).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { openLanes } from "@lanekeeper/core";
import { connect } from "@nats-io/transport-node";

interface Mails {
  requested: { subject: string };
}

/** How long it takes to send a mail, in milliseconds. */
const sendMs = Number(process.env["SEND_MS"] ?? 1_000);

const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
const lanes = await openLanes<Mails>(connection, { stream: "MAILS", create: { subject: "mails" } });

const worker = await lanes.work({ group: "sender" }, async (event, context) => {
  console.log(`sending "${event.data.subject}" to ${event.key}`);
  // Pass the signal on to whatever takes time, so that it can be cut short.
  await sleep(sendMs, undefined, { signal: context.signal });
  console.log(`sent "${event.data.subject}" to ${event.key}`);
});

const stop = (): void => {
  console.log("stopping");
  // Both may be called many times; all calls share one close.
  void worker.close({ graceMs: 20_000 });
};
process.on("SIGTERM", stop);
process.on("SIGINT", stop);
console.log("working");

// Also settles when the worker ended by itself: the connection was closed for good, or the stream is gone.
const reason = await worker.closed;
await lanes.close();
await connection.close();
if (reason.type !== "closed") throw reason.error;
console.log("stopped");
process.exit(0);
