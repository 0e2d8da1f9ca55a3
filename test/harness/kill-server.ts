import { machineMs } from "./history-recorder.js";
import type { LaneScene } from "./lane-scene.js";

/** Kills the scene's server with -9, records it, and starts it again; resolves once JetStream answers. */
export async function killAndRestart({ server, history }: LaneScene): Promise<void> {
  const sentAtMs = machineMs();
  await server.kill();
  history.record({ kind: "server-killed", sentAtMs });
  await server.restart();
}
