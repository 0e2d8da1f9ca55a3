import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { startTestServer } from "@lanekeeper/core/testing";
import { expect, test } from "vitest";

const EXAMPLE = fileURLToPath(new URL("../packages/examples/dist/cpu-bound.js", import.meta.url));
const GUIDE = new URL("../docs/guides/cpu-bound-handlers.md", import.meta.url);

test("cpu-bound: computations on worker threads leave the event loop free, and a signal ends the one that takes too long", {
  timeout: 120_000,
}, async () => {
  await using server = await startTestServer();
  const child = spawn(process.execPath, [EXAMPLE], {
    env: { ...process.env, NATS_URL: server.url },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 100_000,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  expect(code, `${stdout}\n${stderr}`).toBe(0);
  // Each line once: a process that stands still for most of its lease is fenced, and handles an event again (O4).
  const lines = [...new Set(stdout.split("\n"))];
  const of = (key: string) => lines.filter((line) => line.startsWith(`${key}:`));
  expect(of("greedy")).toEqual(["greedy: gave up, HANDLER_TIMEOUT", "greedy: 1000000 trials, about 200"]);
  expect(of("modest")).toEqual(["modest: 2000000 trials, about 199", "modest: 3000000 trials, about 199"]);
  // The runaway was never on the event loop: its timeout could fire there, twice.
  expect(stdout.indexOf("modest: 2000000")).toBeLessThan(stdout.indexOf("greedy: gave up"));
});

test("the guide shows the example as it is", () => {
  const guide = readFileSync(GUIDE, "utf8");
  for (const file of ["cpu-bound.ts", "cpu-bound-task.ts"]) {
    const code = readFileSync(new URL(`../packages/examples/src/${file}`, import.meta.url), "utf8");
    const body = code.replace(/^\/\*\*[\s\S]*?\*\/\n/, "");
    expect(guide, file).toContain(`\`\`\`ts fragment\n${body}\`\`\``);
  }
});
