import { connect as connectSocket } from "node:net";
import type { NodePorts } from "./server-config.js";

const ANSWER_MS = 2_000;

/** The name in the INFO line of whoever listens on the client port; undefined when nobody answers in time. */
export function serverNameAt(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connectSocket({ port, host: "127.0.0.1" });
    let text = "";
    const finish = (name: string | undefined): void => {
      socket.destroy();
      resolve(name);
    };
    socket.setEncoding("utf8");
    socket.setTimeout(ANSWER_MS, () => finish(undefined));
    socket.on("error", () => finish(undefined));
    socket.on("close", () => finish(undefined));
    socket.on("data", (chunk: string) => {
      text += chunk;
      const name = /"server_name":"([^"]*)"/.exec(text)?.[1];
      if (name !== undefined) finish(name);
      else if (text.includes("\r\n") || text.length > 65_536) finish(undefined);
    });
  });
}

/** Whether the node says of itself that JetStream works (in a cluster: it has caught up and knows the meta leader). */
export async function isHealthy(ports: NodePorts): Promise<boolean> {
  const health = await ask(ports.monitor, "/healthz?js-server-only=true");
  return health?.["status"] === "ok";
}

/** The name of the meta leader that a node of a cluster knows; undefined when it knows none or does not answer. */
export async function metaLeader(ports: NodePorts): Promise<string | undefined> {
  const meta = (await ask(ports.monitor, "/jsz"))?.["meta_cluster"];
  if (!isRecord(meta)) return undefined;
  return typeof meta["leader"] === "string" && meta["leader"] !== "" ? meta["leader"] : undefined;
}

async function ask(port: number, path: string): Promise<Record<string, unknown> | undefined> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) });
    const body: unknown = await answer.json();
    return isRecord(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
