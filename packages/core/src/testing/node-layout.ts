import { freePorts } from "./free-ports.js";
import type { NodePorts } from "./server-config.js";

const MAX_LABELS = 8;

/** What a `config` function is told about the node whose configuration it extends. */
export interface ConfigContext {
  /** `n1`, `n2` or `n3`. */
  readonly name: string;
  /** From 0. */
  readonly index: number;
  /** A free port of 127.0.0.1, the same for the same label; `TestServerNode.port(label)` tells it later. */
  port(label: string): number;
}

/** What is decided about a node before it is started. */
export interface NodeLayout {
  name: string;
  ports: NodePorts;
  labelled: ReadonlyMap<string, number>;
  extra: string;
}

/** Gives every node its ports, also those that `config` asks for. */
export async function layOut(
  names: readonly string[],
  config: string | ((node: ConfigContext) => string) | undefined,
): Promise<NodeLayout[]> {
  const spare = await freePorts(
    names.length * 3 + (typeof config === "function" ? names.length * MAX_LABELS : 0),
  );
  const next = (): number => {
    const port = spare.pop();
    if (port === undefined)
      throw new Error(`the config of a test server may ask for at most ${MAX_LABELS} ports per node`);
    return port;
  };
  const layout = names.map((name) => ({ name, ports: { client: next(), cluster: next(), monitor: next() } }));
  return layout.map(({ name, ports }, index) => {
    const labelled = new Map<string, number>();
    const port = (label: string): number => {
      const chosen = labelled.get(label) ?? next();
      labelled.set(label, chosen);
      return chosen;
    };
    const extra = typeof config === "function" ? config({ name, index, port }) : (config ?? "");
    return { name, ports, labelled, extra };
  });
}
