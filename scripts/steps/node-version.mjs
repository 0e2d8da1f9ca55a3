import { SetUpError } from "./set-up-error.mjs";

const OLDEST = [20, 19];

/** @throws {SetUpError} when this Node.js is older than 20.19. */
export function checkNodeVersion(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new SetUpError(
    `Lanekeeper needs Node.js ${OLDEST.join(".")} or later, and this is ${version}. Install a newer one and try again.`,
  );
}
