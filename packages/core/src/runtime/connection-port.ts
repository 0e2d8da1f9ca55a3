/** What the runtime needs to know of the connection it was given. */
export interface ConnectionPort {
  readonly serverVersion: string;
  readonly maxPayloadBytes: number;
  /** The server process that is connected to; another start of the same server is another one. */
  readonly serverId: string;
  /** Whether that very process keeps the consumers: it has JetStream, is in no cluster, and no other domain is asked. */
  readonly keepsConsumers: boolean;
  isConnected(): boolean;
  isClosed(): boolean;
  /** A round trip to the server; rejects when the connection is closed. */
  ping(): Promise<void>;
  /** Calls `observe` on every change until the returned function is called. Every observer gets every change. */
  observe(observe: (change: ConnectionChange) => void): () => void;
}

export type ConnectionChange =
  | { type: "disconnected" }
  | { type: "reconnected" }
  /** The server refused what was published to `subject`; it does not say which message. */
  | { type: "publish-denied"; subject: string; error: Error }
  | { type: "closed"; error: Error | undefined };
