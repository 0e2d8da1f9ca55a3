import { runTool } from "./run.mjs";
import { SetUpError } from "./set-up-error.mjs";

const BUILD_MS = 300_000;

/** Compiles what has changed since the last time. @throws {SetUpError} when the compiler finds faults. */
export async function build() {
  const code = await runTool("typescript/bin/tsc", ["-b"], { timeoutMs: BUILD_MS });
  if (code !== 0) throw new SetUpError("The build failed; the compiler's reasons are above.");
}
