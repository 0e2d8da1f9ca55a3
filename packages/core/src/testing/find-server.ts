import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { isSupported, matchesVersion, readServerVersion } from "./server-version.js";
import { TestServerError } from "./test-server-error.js";

export interface FindServerOptions {
  /** A line such as `"2.10"`, or a full version. Default: the newest. */
  version?: string;
}

export interface ServerBinary {
  path: string;
  version: string;
}

export async function findServerBinary(options: FindServerOptions = {}): Promise<ServerBinary> {
  const candidates = [process.env["NATS_SERVER_BIN"] ?? ""].concat(
    (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, "nats-server")),
    options.version === "2.10" ? [] : ["/tmp/getns/unstable/out/usr/sbin/nats-server"],
    ["/tmp/getns/stable/out/usr/sbin/nats-server"],
  );
  for (const path of candidates) {
    if (path === "") continue;
    try {
      await access(path, constants.X_OK);
      const version = await readServerVersion(path);
      if (
        isSupported(version) &&
        (options.version === undefined || matchesVersion(version, options.version))
      ) {
        return { path, version };
      }
    } catch {
      // The next one.
    }
  }
  throw new TestServerError("NATS_SERVER_NOT_FOUND", "no nats-server");
}
