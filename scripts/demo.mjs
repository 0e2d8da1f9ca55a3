// npm run demo: sets up what is missing, then runs the demo with all arguments and the input given to this script.
import { fileURLToPath } from "node:url";
import { root, run } from "./steps/run.mjs";
import { setUp } from "./steps/set-up.mjs";
import { printFailure } from "./steps/set-up-error.mjs";

const DEMO_MS = 3_600_000;

try {
  const server = await setUp();
  const program = fileURLToPath(new URL("packages/examples/dist/demo/main.js", root));
  process.exitCode = await run(process.execPath, [program, ...process.argv.slice(2)], {
    env: { NATS_SERVER_BIN: server.path },
    // Files named in the arguments are meant from where the user is; npm has gone to the root folder.
    cwd: process.env.npm_lifecycle_event === "demo" ? process.env.INIT_CWD : process.cwd(),
    stdin: "inherit",
    timeoutMs: DEMO_MS,
  });
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
}
