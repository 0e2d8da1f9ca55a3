// npm test: sets up what is missing, then every check and test. With arguments: only those tests, by vitest.
import { runTool } from "./steps/run.mjs";
import { getServer } from "./steps/servers.mjs";
import { setUp } from "./steps/set-up.mjs";
import { printFailure } from "./steps/set-up-error.mjs";
import { Summary } from "./steps/summary.mjs";
import { runVitest } from "./steps/vitest-run.mjs";

/** The oldest line that is supported: what runs a real server runs on it too. */
const OLDEST_LINE = "2.10";
/** What depends on how a server behaves, beginnings of paths; the rest is the same on every server. */
const ON_OLDEST = [
  "test/configuration",
  "test/group",
  "test/mapping",
  "test/nats-server-conf",
  "test/open-lanes",
  "test/owned-streams",
  "test/owned-takeover",
  "test/partitioner-server",
  "test/publisher.int",
  "test/publisher-mapping.int",
  "test/shared-order",
  "test/work",
];
/** Both runs, set-up and all checks have to fit into twenty minutes. */
const NEWEST_MS = 840_000;
const OLDEST_MS = 300_000;
const CHECK_MS = 120_000;

const chosen = process.argv.slice(2);
const summary = new Summary();
let newest;
let oldest;

await summary.step("set-up", async () => {
  try {
    newest = await setUp();
    if (chosen.length === 0) oldest = await getServer(OLDEST_LINE);
    return 0;
  } catch (error) {
    printFailure(error);
    return 1;
  }
});

if (newest !== undefined && chosen.length > 0) {
  await tests(`tests on nats-server ${newest.version}`, newest, chosen, NEWEST_MS);
} else if (newest !== undefined) {
  await check("formatter and linter", "@biomejs/biome/bin/biome", ["check", "--error-on-warnings", "."]);
  await check("unused code", "knip/bin/knip.js", []);
  for (const name of ["partitioner", "core"]) {
    await check(`package of ${name}`, "publint/src/cli.js", [
      "run",
      `packages/${name}`,
      "--strict",
      "--pack",
      "npm",
    ]);
  }
  await check("types", "typescript/bin/tsc", ["-p", "tsconfig.check.json"]);
  await tests(`all tests, on nats-server ${newest.version}`, newest, [], NEWEST_MS);
  if (oldest !== undefined) {
    await tests(
      `tests of what needs no newer server, on nats-server ${oldest.version}`,
      oldest,
      ON_OLDEST,
      OLDEST_MS,
    );
  }
}

summary.print();
if (summary.failed > 0) process.exitCode = 1;

async function check(name, tool, args) {
  await summary.step(name, () => runTool(tool, args, { timeoutMs: CHECK_MS }));
}

async function tests(name, server, args, timeoutMs) {
  await summary.step(name, () => runVitest(args, { NATS_SERVER_BIN: server.path }, timeoutMs));
}
