import { root } from "./run.mjs";
import { SetUpError } from "./set-up-error.mjs";

/**
 * Finds or gets a nats-server. Needs the build.
 *
 * @param {string | undefined} version a line such as "2.10"; undefined for the newest.
 * @returns {Promise<{ path: string, version: string, source: string }>}
 * @throws {SetUpError} with everything that was tried.
 */
export async function getServer(version) {
  const { findServerBinary } = await import(new URL("packages/core/dist/testing/index.js", root).href);
  try {
    const server = await findServerBinary({
      ...(version === undefined ? {} : { version }),
      onProgress: (line) => console.log(`nats-server: ${line}`),
    });
    console.log(`nats-server ${server.version} (${server.source}: ${server.path})`);
    return server;
  } catch (error) {
    if (typeof error?.code === "string" && error.code.startsWith("NATS_SERVER_"))
      throw new SetUpError(error.message);
    throw error;
  }
}
