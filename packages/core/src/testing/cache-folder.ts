import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** A getter that has not finished after a day was interrupted. */
const ABANDONED_MS = 24 * 60 * 60 * 1_000;
const TEMPORARY = "getting-";

/** Where the cached servers are: a folder for each, with its version as its name. */
export function serversFolder(env: NodeJS.ProcessEnv): string {
  return join(cacheFolder(env), "nats-server");
}

/** Path of the server of that version, there or not. */
export function cachedServer(env: NodeJS.ProcessEnv, version: string): string {
  return join(serversFolder(env), version, "nats-server");
}

/** Versions in the cache, in no order. */
export async function cachedVersions(env: NodeJS.ProcessEnv): Promise<string[]> {
  const names = await readdir(serversFolder(env)).catch(() => []);
  return names.filter((name) => /^\d+\.\d+\.\d+/.test(name));
}

/**
 * Lets `fill` work in a private folder beside the cached servers, which is gone afterwards however it ends.
 * What is to stay is put in place by `keepServer`, whole or not at all.
 */
export async function withPrivateFolder<T>(
  env: NodeJS.ProcessEnv,
  fill: (folder: string) => Promise<T>,
): Promise<T> {
  const servers = serversFolder(env);
  await mkdir(servers, { recursive: true });
  await sweepAbandoned(servers);
  const folder = join(servers, `${TEMPORARY}${process.pid}-${randomBytes(4).toString("hex")}`);
  await mkdir(folder, { mode: 0o700 });
  try {
    return await fill(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * Moves a finished folder, with `nats-server` in it, to its place. Of several getters at once the first one wins
 * and the others use what it put there.
 *
 * @returns the server's path.
 */
export async function keepServer(env: NodeJS.ProcessEnv, finished: string, version: string): Promise<string> {
  const binary = cachedServer(env, version);
  try {
    await rename(finished, join(serversFolder(env), version));
  } catch (error) {
    if (!(await exists(binary))) throw error;
  }
  return binary;
}

/** `LANEKEEPER_CACHE`, else `XDG_CACHE_HOME/lanekeeper`, else `~/.cache/lanekeeper`; absolute. Not created. */
function cacheFolder(env: NodeJS.ProcessEnv): string {
  const own = env["LANEKEEPER_CACHE"];
  if (own !== undefined && own !== "") return resolve(own);
  const shared = env["XDG_CACHE_HOME"];
  if (shared !== undefined && shared !== "") return join(resolve(shared), "lanekeeper");
  return join(env["HOME"] || homedir(), ".cache", "lanekeeper");
}

async function sweepAbandoned(servers: string): Promise<void> {
  for (const name of await readdir(servers)) {
    if (!name.startsWith(TEMPORARY)) continue;
    const folder = join(servers, name);
    const age = await stat(folder).then(
      (found) => Date.now() - found.mtimeMs,
      () => 0,
    );
    if (age > ABANDONED_MS) await rm(folder, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
