import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the range from which Linux (32768+) and macOS (49152+) take the ports of outgoing connections.
 * A server that was killed must find its port free when it comes back. In the outgoing range it could be
 * gone: to any connection on the machine, or to a client that reconnects to the dead port and, given that
 * very port as its own, connects to itself.
 */
const LOWEST = 15_000;
const HIGHEST = 32_000;
const MAX_PROBES = 200;

/** `count` different ports of 127.0.0.1 that nobody listened on a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let probe = 0; ports.size < count; probe++) {
    if (probe >= MAX_PROBES + count)
      throw new Error(`found ${ports.size} of ${count} free ports on 127.0.0.1`);
    const port = randomInt(LOWEST, HIGHEST);
    if (!ports.has(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
}

/** Whether a listener can be bound to the port of 127.0.0.1 at this moment. */
function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
