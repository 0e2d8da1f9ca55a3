import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./harness/markdown.js";

/** What each layer may import (ADR 0008), and whether it may look at clocks, timers or random numbers. */
const LAYERS = [
  { folder: "packages/partitioner/src", may: /^(?:\.\/|murmurhash$)/, pure: true },
  {
    folder: "packages/core/src/domain",
    may: /^(?:\.\/|@lanekeeper\/partitioner$|@standard-schema\/spec$)/,
    pure: true,
  },
  {
    folder: "packages/core/src/runtime",
    may: /^(?:\.\/|\.\.\/domain\/|@lanekeeper\/partitioner$|@standard-schema\/spec$|p-queue$)/,
    pure: false,
  },
  {
    folder: "packages/core/src/nats",
    may: /^(?:\.\/|\.\.\/domain\/|\.\.\/runtime\/|@lanekeeper\/partitioner$|@nats-io\/|node:)/,
    pure: false,
  },
] as const;

const IMPURE =
  /\b(?:Date\.now|new Date\(\)|performance\.|setTimeout|setInterval|setImmediate|Math\.random|process\.)/;

test.each(LAYERS)("$folder imports nothing from a layer above it, and is as pure as it says", (layer) => {
  const files = readdirSync(join(ROOT, layer.folder)).filter(
    (name) => name.endsWith(".ts") && !/\.(?:test|prop\.test|test-d|test-support)\.ts$/.test(name),
  );
  expect(files.length).toBeGreaterThan(5);
  const faults = files.flatMap((name) =>
    faultsOf(readFileSync(join(ROOT, layer.folder, name), "utf8"), layer).map((fault) => `${name}: ${fault}`),
  );
  expect(faults).toEqual([]);
});

test("an import from above and a look at the clock are found", () => {
  const source = [
    'import { a } from "./a.js";',
    'import type { B } from "../nats/b.js";',
    "import {\n  c,\n} from '@nats-io/jetstream';",
    'export { d } from "../runtime/d.js";',
    "// Date.now() in a comment is none",
    "const now = Date.now();",
  ].join("\n");
  expect(faultsOf(source, LAYERS[1])).toEqual([
    "imports ../nats/b.js",
    "imports @nats-io/jetstream",
    "imports ../runtime/d.js",
    "uses Date.now",
  ]);
});

function faultsOf(source: string, { may, pure }: { may: RegExp; pure: boolean }): string[] {
  const imports = [...source.matchAll(/\bfrom ["']([^"']+)["']|\bimport\s*\(?\s*["']([^"']+)["']/g)];
  const faults = imports
    .map(([, from, direct]) => from ?? direct ?? "")
    .filter((name) => !may.test(name))
    .map((name) => `imports ${name}`);
  const code = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
  const impure = pure ? IMPURE.exec(code) : null;
  return impure === null ? faults : [...faults, `uses ${impure[0]}`];
}
