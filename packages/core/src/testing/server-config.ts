/** The ports of one node of a test server; all on 127.0.0.1. */
export interface NodePorts {
  client: number;
  cluster: number;
  monitor: number;
}

/** What one node's configuration file is made of. */
export interface NodeConfig {
  name: string;
  ports: NodePorts;
  storeDir: string;
  /** Route ports of all nodes of the cluster, this one's included; a single one means no cluster. */
  clusterPorts: readonly number[];
  /** Appended as it is. A top-level setting given here replaces ours. */
  extra: string;
}

/** The text of a nats-server configuration file. */
export function serverConfig(node: NodeConfig): string {
  const lines = [
    `server_name: ${quote(node.name)}`,
    `listen: "127.0.0.1:${node.ports.client}"`,
    // Readiness is asked here, because it needs no credentials whatever `extra` configures.
    `http: "127.0.0.1:${node.ports.monitor}"`,
    `jetstream { store_dir: ${quote(node.storeDir)} }`,
  ];
  if (node.clusterPorts.length > 1) {
    const routes = node.clusterPorts.map((port) => quote(`nats-route://127.0.0.1:${port}`));
    lines.push(
      "cluster {",
      "  name: lanekeeper-test",
      `  listen: "127.0.0.1:${node.ports.cluster}"`,
      // All routes, also to itself: the server takes the number of peers to wait for from this list.
      `  routes: [${routes.join(", ")}]`,
      "}",
    );
  }
  return `${lines.join("\n")}\n${node.extra}\n`;
}

/** A string of the configuration language, whose escapes are those of JSON for what can occur here. */
function quote(text: string): string {
  return JSON.stringify(text);
}
