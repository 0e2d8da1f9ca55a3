import { type NatsConnection, PermissionViolationError } from "@nats-io/nats-core";
import type { ConnectionChange, ConnectionPort } from "../runtime/connection-port.js";
import { plainPrefix } from "./jetstream-api.js";

/** One status iterator per connection serves any number of observers. `apiPrefix`: of the JetStream API that is asked. */
export function connectionAdapter(
  connection: NatsConnection,
  apiPrefix: string,
): ConnectionPort & { stop(): void } {
  const observers = new Set<(change: ConnectionChange) => void>();
  const tell = (change: ConnectionChange) => {
    for (const observe of [...observers]) observe(change);
  };
  let connected = !connection.isClosed();
  const status = connection.status();
  void (async () => {
    for await (const event of status) {
      const { type } = event;
      if (type === "disconnect") {
        connected = false;
        tell({ type: "disconnected" });
      } else if (type === "reconnect") {
        connected = true;
        tell({ type: "reconnected" });
      } else if (type === "error") {
        const { error } = event;
        if (error instanceof PermissionViolationError && error.operation === "publish") {
          tell({ type: "publish-denied", subject: error.subject, error });
        }
      }
    }
  })();
  void connection.closed().then((error) => {
    connected = false;
    tell({ type: "closed", error: error instanceof Error ? error : undefined });
  });
  return {
    get serverVersion() {
      return connection.info?.version ?? "unknown";
    },
    get serverId() {
      return connection.info?.server_id ?? "unknown";
    },
    get keepsConsumers() {
      const { info } = connection;
      return info?.cluster === undefined && info?.jetstream === true && apiPrefix === plainPrefix;
    },
    get maxPayloadBytes() {
      return connection.info?.max_payload ?? 1024 * 1024;
    },
    isConnected: () => connected && !connection.isClosed(),
    isClosed: () => connection.isClosed(),
    ping: () => connection.flush(),
    observe(observe) {
      observers.add(observe);
      return () => observers.delete(observe);
    },
    stop() {
      observers.clear();
      (status as AsyncIterable<unknown> & { stop?: () => void }).stop?.();
    },
  };
}
