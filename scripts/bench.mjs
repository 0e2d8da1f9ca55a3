// npm run bench: sets up what is missing, then runs the benchmarks with all arguments given to this script.
import { fileURLToPath } from "node:url";
import { root, run } from "./steps/run.mjs";
import { setUp } from "./steps/set-up.mjs";
import { printFailure } from "./steps/set-up-error.mjs";

const BENCH_MS = 7_200_000;

try {
  const server = await setUp();
  const program = fileURLToPath(new URL("bench/dist/main.js", root));
  process.exitCode = await run(process.execPath, [program, ...process.argv.slice(2)], {
    env: { NATS_SERVER_BIN: server.path },
    timeoutMs: BENCH_MS,
  });
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
}
