import type { History } from "./history.js";
import { ackVerbOf, deliveryOf, deliveryOfReply } from "./jetstream-frames.js";
import type { NatsProxy } from "./nats-proxy.js";

/**
 * Records every JetStream delivery and every answer to one that passes the proxy, named after the connection's
 * client name, which is the process's name for the programs in `programs/`.
 */
export function recordWire(proxy: NatsProxy, history: History): Disposable {
  return proxy.observe((direction, frame, { clientName: client }) => {
    const verb = direction === "to-server" ? ackVerbOf(frame) : undefined;
    const info = direction === "to-client" ? deliveryOf(frame) : deliveryOfReply(frame.subject);
    if (info === undefined || (direction === "to-server" && verb === undefined)) return;
    const { consumer, streamSeq: seq, deliveries, deliverySeq } = info;
    history.record({
      kind: "wire",
      what: verb ?? "delivery",
      client,
      consumer,
      seq,
      deliveries,
      deliverySeq,
    });
  });
}
