// npm run setup: installs the dependencies, builds, and gets a nats-server.

import { setUp } from "./steps/set-up.mjs";
import { printFailure } from "./steps/set-up-error.mjs";

try {
  await setUp();
  console.log("ready");
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
}
