import { build } from "./build.mjs";
import { installDependencies } from "./dependencies.mjs";
import { checkNodeVersion } from "./node-version.mjs";
import { getServer } from "./servers.mjs";

/**
 * Everything that the commands need on a machine with Node.js and npm. Takes a second or two when all is there.
 *
 * @returns {Promise<{ path: string, version: string }>} the nats-server to run.
 * @throws {SetUpError}
 */
export async function setUp() {
  checkNodeVersion();
  await installDependencies();
  await build();
  return await getServer();
}
