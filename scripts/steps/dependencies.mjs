import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { root, run } from "./run.mjs";
import { SetUpError } from "./set-up-error.mjs";

/** Which pnpm installs; npm fetches it, so that nothing but Node.js and npm has to be there. */
const PNPM = "pnpm@12.21.0";
const INSTALL_MS = 600_000;
const stamp = new URL("node_modules/.lanekeeper/installed", root);

/**
 * Installs the dependencies of the lockfile, unless they were installed for this very lockfile and Node.js before.
 *
 * @throws {SetUpError} when that fails.
 */
export async function installDependencies() {
  const wanted = fingerprint();
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  console.log("installing dependencies");
  // CI: pnpm would otherwise ask, on a terminal, before it replaces a node_modules it did not make.
  const code = await run(
    "npm",
    ["exec", "--yes", PNPM, "--", "install", "--frozen-lockfile", "--reporter=append-only"],
    {
      env: { CI: "true" },
      timeoutMs: INSTALL_MS,
    },
  );
  if (code !== 0) {
    throw new SetUpError(
      `The dependencies could not be installed (${PNPM} ended with ${code}; its reason is above).`,
    );
  }
  mkdirSync(new URL(".", stamp), { recursive: true });
  writeFileSync(stamp, wanted);
}

/** Of everything that decides what is installed. */
function fingerprint() {
  const hash = createHash("sha256").update(
    `${PNPM} ${process.versions.modules} ${process.platform} ${process.arch}`,
  );
  const packages = readdirSync(new URL("packages/", root)).map((name) => `packages/${name}/package.json`);
  for (const file of [
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "package.json",
    ...packages,
    "test/package.json",
    "bench/package.json",
  ]) {
    const path = new URL(file, root);
    hash.update(`${file} ${existsSync(path) ? readFileSync(path, "utf8") : "absent"}\n`);
  }
  return hash.digest("hex");
}
