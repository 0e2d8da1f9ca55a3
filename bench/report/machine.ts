import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os";

/** Where a run took place. */
export interface Machine {
  readonly cpu: string;
  /** Cores that this process may use. */
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  /** One-minute load average before the run: well above 0 means that others were using the machine. */
  readonly loadBefore: number;
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    memoryGiB: Math.round((totalmem() / 1_024 ** 3) * 10) / 10,
    system: `${platform()} ${release()}`,
    loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

/** Versions of what is measured and compared, as installed. */
export function installedVersions(): Record<string, string> {
  return {
    node: process.versions.node,
    lanekeeper: versionIn(new URL("../../../packages/core/package.json", import.meta.url)),
    "@nats-io/jetstream": versionIn(
      new URL("../../node_modules/@nats-io/jetstream/package.json", import.meta.url),
    ),
  };
}

function versionIn(packageJson: URL): string {
  const { version }: { version?: unknown } = JSON.parse(readFileSync(packageJson, "utf8"));
  return typeof version === "string" ? version : "unknown";
}
