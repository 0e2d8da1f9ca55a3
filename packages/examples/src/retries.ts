/**
 * How a handler steers what becomes of an event: by what it throws.
 *
 * - anything: the event is tried again after a delay that grows; later events of its lane wait
 * - RetryableError with retryAfterMs: tried again after that delay, for a service that says when to come back
 * - TerminalError: never tried again, as no retry can help
 *
 * When an event has failed for good, `onExhausted` decides: "block" keeps trying at the longest delay and holds the
 * lane, so that nothing is skipped; "drop" goes on without it and says so in a notification.
 */
import { openLanes, RetryableError, TerminalError } from "@lanekeeper/core";
import { connect } from "@nats-io/transport-node";

interface Payments {
  requested: { cents: number };
}

const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" });
const lanes = await openLanes<Payments>(connection, { stream: "PAYMENTS", create: { subject: "payments" } });

await lanes.work(
  {
    group: "bank",
    retry: { attempts: 5, initialDelayMs: 100, factor: 2, maxDelayMs: 5_000 },
    onExhausted: "drop",
    onNotification: ({ type, key, error }) => {
      if (type === "dropped") console.log(`dropped an event of ${key}: ${error?.message}`);
    },
  },
  async (event) => {
    console.log(`${event.key}: attempt ${event.attempt} at ${event.data.cents} cents`);
    if (event.data.cents <= 0) throw new TerminalError("an amount must be positive");
    if (event.key === "busy" && event.attempt === 1) {
      throw new RetryableError("the bank asks to come back", { retryAfterMs: 50 });
    }
    if (event.key === "flaky" && event.attempt < 3) throw new Error("the bank does not answer");
    console.log(`${event.key}: paid ${event.data.cents} cents`);
  },
);

const publisher = lanes.publisher();
await Promise.all([
  publisher.publish({ key: "busy", type: "requested", data: { cents: 100 } }),
  publisher.publish({ key: "flaky", type: "requested", data: { cents: 200 } }),
  publisher.publish({ key: "flaky", type: "requested", data: { cents: 300 } }),
  publisher.publish({ key: "wrong", type: "requested", data: { cents: -1 } }),
  publisher.publish({ key: "wrong", type: "requested", data: { cents: 400 } }),
]);

await lanes.group("bank").caughtUp();
await lanes.close();
await connection.close();
