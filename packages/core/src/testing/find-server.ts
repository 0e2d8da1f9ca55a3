import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { cachedServer, cachedVersions, serversFolder } from "./cache-folder.js";
import { getDebianPackage } from "./debian-package.js";
import { downloadRelease, NEWEST_RELEASE } from "./release-download.js";
import {
  compareVersions,
  isSupported,
  lineOf,
  MINIMUM_VERSION,
  matchesVersion,
  readServerVersion,
} from "./server-version.js";

export interface FindServerOptions {
  /** A line such as `"2.10"`, or a full version. Default: any from 2.10, and of those to be fetched the newest. */
  version?: string;
  /** Read instead of this process's environment. */
  env?: NodeJS.ProcessEnv;
  /** Told, in one line each, what takes long (a download) and what was skipped. */
  onProgress?: (line: string) => void;
}

/** A nats-server that runs on this machine and is 2.10 or later. */
export interface ServerBinary {
  readonly path: string;
  /** For example `"2.15.1"`. */
  readonly version: string;
  /** Which source had it. */
  readonly source: "NATS_SERVER_BIN" | "PATH" | "cache" | "release" | "Debian package";
}

/**
 * Finds a nats-server, or gets one into the cache folder. In this order: `NATS_SERVER_BIN`, `PATH`, the cache
 * folder, a release of NATS (checked against its SHA256SUMS; another address by `LANEKEEPER_NATS_DOWNLOAD_URL`),
 * Debian's package (checked against the archive's signature). Every wait has a deadline; nothing is installed.
 *
 * @throws LanekeeperError NATS_SERVER_NOT_FOUND with everything that was tried and each one's reason;
 * NATS_SERVER_TOO_OLD with the version and path, when `NATS_SERVER_BIN` is older than 2.10, or when an older one
 * was on the `PATH` and no later source had a better one.
 */
export async function findServerBinary(options: FindServerOptions = {}): Promise<ServerBinary> {
  const env = options.env ?? process.env;
  const search: Search = {
    wanted: options.version,
    env,
    onProgress: options.onProgress ?? (() => {}),
    tried: [],
    metTooOld: false,
  };
  return (
    (await fromVariable(search)) ??
    (await fromPath(search)) ??
    (await fromCache(search, lineOf(NEWEST_RELEASE))) ??
    (await attempt(search, "release", () => downloadRelease(search.wanted, env, search.onProgress))) ??
    (await attempt(search, "Debian package", () =>
      getDebianPackage(search.wanted, env, search.onProgress),
    )) ??
    // Better an older cached server than none, on a machine that is offline.
    (search.wanted === undefined ? await fromCache(search, MINIMUM_VERSION) : undefined) ??
    notFound(search)
  );
}

/**
 * The version of a server that somebody chose by its path.
 *
 * @param chosenBy for the error's text: where the path was given.
 * @throws LanekeeperError NATS_SERVER_NOT_FOUND when it does not run, NATS_SERVER_TOO_OLD when it is older than 2.10.
 */
export async function versionOfNamed(path: string, chosenBy: string): Promise<string> {
  let version: string;
  try {
    version = await readServerVersion(path);
  } catch (error) {
    const message = `${chosenBy} is ${path}, which does not run: ${reasonOf(error)}. Correct or unset it.`;
    throw new LanekeeperError("NATS_SERVER_NOT_FOUND", message, { cause: error });
  }
  if (isSupported(version)) return version;
  const message = `${chosenBy} is ${path}, a nats-server ${version}; ${MINIMUM_VERSION} or later is needed.`;
  throw new LanekeeperError("NATS_SERVER_TOO_OLD", message);
}

interface Search {
  wanted: string | undefined;
  env: NodeJS.ProcessEnv;
  onProgress: (line: string) => void;
  /** A line for each source that had nothing, with its reason. */
  tried: string[];
  metTooOld: boolean;
}

/** Who names a server gets that one or an error, never silently another. */
async function fromVariable(search: Search): Promise<ServerBinary | undefined> {
  const path = search.env["NATS_SERVER_BIN"];
  if (path === undefined || path === "") return skip(search, "NATS_SERVER_BIN: not set");
  const version = await versionOfNamed(path, "NATS_SERVER_BIN");
  if (!isWanted(search, version)) {
    return skip(search, `NATS_SERVER_BIN: ${path} is ${version}, not ${search.wanted}`, true);
  }
  return { path, version, source: "NATS_SERVER_BIN" };
}

async function fromPath(search: Search): Promise<ServerBinary | undefined> {
  const folders = (search.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  let met = false;
  for (const folder of new Set(folders)) {
    const path = join(folder, "nats-server");
    if (!(await isExecutable(path))) continue;
    met = true;
    try {
      const version = await readServerVersion(path);
      if (!isSupported(version)) {
        search.metTooOld = true;
        skip(search, `PATH: ${path} is ${version}, older than ${MINIMUM_VERSION}`, true);
      } else if (!isWanted(search, version)) {
        skip(search, `PATH: ${path} is ${version}, not ${search.wanted}`);
      } else {
        return { path, version, source: "PATH" };
      }
    } catch (error) {
      skip(search, `PATH: ${path} does not run: ${reasonOf(error)}`, true);
    }
  }
  return met ? undefined : skip(search, `PATH: no nats-server in ${folders.length} folders`);
}

/** @param oldest the least that will do when no version is asked for: a cached 2.10 must not stand in for the newest. */
async function fromCache(search: Search, oldest: string): Promise<ServerBinary | undefined> {
  const versions = (await cachedVersions(search.env))
    .filter(
      (version) =>
        isWanted(search, version) && (search.wanted !== undefined || compareVersions(version, oldest) >= 0),
    )
    .sort((a, b) => compareVersions(b, a));
  for (const name of versions) {
    const path = cachedServer(search.env, name);
    try {
      const version = await readServerVersion(path);
      return { path, version, source: "cache" };
    } catch (error) {
      skip(search, `cache: ${path} does not run: ${reasonOf(error)}`, true);
    }
  }
  const what = search.wanted ?? `${oldest} or later`;
  return versions.length > 0 ? undefined : skip(search, `cache: no ${what} in ${serversFolder(search.env)}`);
}

async function attempt(
  search: Search,
  source: "release" | "Debian package",
  get: () => Promise<{ path: string; version: string }>,
): Promise<ServerBinary | undefined> {
  try {
    return { ...(await get()), source };
  } catch (error) {
    return skip(search, `${source}: ${reasonOf(error)}`, true);
  }
}

function skip(search: Search, reason: string, tell = false): undefined {
  search.tried.push(reason);
  if (tell) search.onProgress(`skipped: ${reason}`);
}

function notFound(search: Search): never {
  const what = search.wanted === undefined ? `${MINIMUM_VERSION} or later` : search.wanted;
  throw new LanekeeperError(
    search.metTooOld ? "NATS_SERVER_TOO_OLD" : "NATS_SERVER_NOT_FOUND",
    `No nats-server (${what}) was found or could be fetched. Tried:\n${search.tried.map((line) => `  - ${line}`).join("\n")}\n` +
      "Set NATS_SERVER_BIN to a nats-server, or LANEKEEPER_NATS_DOWNLOAD_URL to a mirror of NATS's releases.",
  );
}

function isWanted(search: Search, version: string): boolean {
  return search.wanted === undefined || matchesVersion(version, search.wanted);
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
