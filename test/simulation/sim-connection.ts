import { headers, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node";
import type { ConnectionChange, ConnectionPort } from "../../packages/core/src/runtime/connection-port.js";
import type { Reply, SimLink } from "./sim-link.js";
import type { SimServer } from "./sim-server.js";

interface SimSubscription {
  readonly prefix: string;
  readonly callback: (error: Error | null, message: Msg) => void;
  closed: boolean;
}

const nothing = new Uint8Array(0);

/** As much of a client's connection as the production feed uses, over a simulated link. */
export class SimConnection {
  readonly link: SimLink;
  readonly #server: SimServer;
  readonly #subscriptions = new Map<string, SimSubscription>();
  /** Subscriptions the server knows of. */
  #interest = new Set<string>();
  readonly #pings = new Set<{ reject: (error: Error) => void }>();
  /** Told of every answer to a delivery at the moment it is sent. */
  readonly #sent: (subject: string, body: string) => void;

  constructor(link: SimLink, server: SimServer, sent: (subject: string, body: string) => void) {
    this.link = link;
    this.#server = server;
    this.#sent = sent;
    link.onResume(() => {
      for (const { prefix } of this.#subscriptions.values()) this.#tellInterest(prefix);
    });
    link.onServerSideEnd(() => {
      this.#interest = new Set();
    });
    link.observe((change) => {
      if (change !== "disconnected") return;
      for (const { reject } of [...this.#pings]) reject(new Error("disconnected"));
      this.#pings.clear();
    });
  }

  /** The connection as production code takes it: nothing but what {@link SimConnection} has is ever used of it. */
  asClient(): NatsConnection {
    return this as unknown as NatsConnection;
  }

  asPort(): ConnectionPort {
    const { link } = this;
    return {
      serverVersion: "2.15.1",
      maxPayloadBytes: 1_048_576,
      serverId: "simulated",
      keepsConsumers: true,
      isConnected: () => link.connected,
      isClosed: () => false,
      ping: () => this.flush(),
      observe: (observe) => {
        return link.observe((type) => observe({ type } as ConnectionChange));
      },
    };
  }

  isClosed(): boolean {
    return false;
  }

  flush(): Promise<void> {
    return new Promise((resolve, reject) => {
      const ping = { reject };
      this.#pings.add(ping);
      this.link.send((reply) =>
        reply(() => {
          this.#pings.delete(ping);
          resolve();
        }),
      );
    });
  }

  subscribe(subject: string, options: { callback: SimSubscription["callback"] }) {
    const prefix = subject.replace(/\*$/, "");
    const subscription: SimSubscription = { prefix, callback: options.callback, closed: false };
    this.#subscriptions.set(prefix, subscription);
    this.#tellInterest(prefix);
    const end = () => {
      subscription.closed = true;
      this.#subscriptions.delete(prefix);
    };
    const forget = () => this.link.send(() => this.#interest.delete(prefix));
    return {
      isClosed: () => subscription.closed,
      unsubscribe: () => {
        if (subscription.closed) return;
        end();
        if (this.link.connected) forget();
      },
      drain: async () => {
        if (this.link.connected) forget();
        try {
          await this.flush();
        } finally {
          end();
        }
      },
    };
  }

  publish(subject: string, payload: Uint8Array = nothing, options: { reply?: string } = {}): void {
    const body = Buffer.from(payload).toString();
    if (subject.startsWith("$JS.ACK.")) this.#sent(subject, body);
    const { reply: inbox } = options;
    this.link.send((reply) => {
      const interest = this.#interest;
      const heard = () => inbox === undefined || interest.has(prefixOf(inbox));
      this.#server.received({
        subject,
        body,
        heard,
        process: this.link.process.name,
        answer: (message) => {
          if (inbox !== undefined) this.#answer(reply, inbox, message);
        },
        stands: () => interest === this.#interest && this.link.process.alive,
      });
    });
  }

  #answer(reply: Reply, inbox: string, message: AnswerMessage): void {
    reply(() => {
      const subscription = this.#subscriptions.get(prefixOf(inbox));
      if (subscription === undefined) return;
      const { code, description } = message.status ?? {};
      const marks = message.status === undefined ? undefined : headers(code, description);
      subscription.callback(null, {
        subject: message.subject ?? inbox,
        data: message.data ?? nothing,
        ...(marks === undefined ? {} : { headers: marks as MsgHdrs }),
        ...(message.reply === undefined ? {} : { reply: message.reply }),
      } as Msg);
    });
  }

  #tellInterest(prefix: string): void {
    this.link.send(() => this.#interest.add(prefix));
  }
}

export interface AnswerMessage {
  readonly subject?: string;
  readonly data?: Uint8Array;
  readonly reply?: string;
  readonly status?: { readonly code: number; readonly description: string };
}

function prefixOf(inbox: string): string {
  return inbox.slice(0, inbox.lastIndexOf(".") + 1);
}
