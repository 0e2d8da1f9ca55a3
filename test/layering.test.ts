import { readdirSync, readFileSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "packages", "core", "src");

/** Source files of core by path under src, tests left out, each with what it imports. */
const files = new Map(
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((path) => relative(root, join(root, path)).replaceAll("\\", "/"))
    .filter((path) => /\.ts$/.test(path) && !/\.(test|test-d|test-support)\.ts$/.test(path))
    .map((path) => [path, importsOf(path, readFileSync(join(root, path), "utf8"))] as const),
);

/** What each folder may import: its own layers, and packages by name. The root composes and may import everything. */
const rules: Record<string, { layers: readonly string[]; packages: readonly (string | RegExp)[] }> = {
  domain: { layers: ["domain"], packages: ["@lanekeeper/partitioner", "@standard-schema/spec"] },
  runtime: {
    layers: ["domain", "runtime"],
    packages: ["@lanekeeper/partitioner", "@standard-schema/spec", "p-queue", "node:crypto"],
  },
  nats: {
    layers: ["domain", "runtime", "nats"],
    packages: ["@lanekeeper/partitioner", /^@nats-io\//, /^node:/],
  },
  testing: { layers: ["domain", "testing"], packages: [/^@nats-io\//, /^node:/, "@lanekeeper/partitioner"] },
};

describe("layers: imports never point upward", () => {
  test.each(Object.entries(rules))("%s", (layer, { layers, packages }) => {
    const faults: string[] = [];
    let seen = 0;
    for (const [path, imports] of files) {
      if (layerOf(path) !== layer) continue;
      seen++;
      for (const target of imports) {
        const allowed = target.endsWith(".ts")
          ? layers.includes(layerOf(target))
          : packages.some((name) => (typeof name === "string" ? name === target : name.test(target)));
        if (!allowed) faults.push(`${path} imports ${target}`);
      }
    }
    expect(faults).toEqual([]);
    expect(seen).toBeGreaterThan(5);
  });

  test("nobody imports what is composed at the root, and testing is imported by nobody", () => {
    const faults = [...files].flatMap(([path, imports]) =>
      imports
        .filter((target) => target.endsWith(".ts") && layerOf(path) !== layerOf(target))
        .filter((target) => ["root", "testing"].includes(layerOf(target)))
        .map((target) => `${path} imports ${target}`),
    );
    expect(faults).toEqual([]);
  });

  test("every import of a file of ours names one that exists", () => {
    const missing = [...files].flatMap(([path, imports]) =>
      imports
        .filter((target) => target.endsWith(".ts") && !files.has(target))
        .map((target) => `${path}: ${target}`),
    );
    expect(missing).toEqual([]);
  });

  test("the clock, timers and randomness are not reached from the domain", () => {
    const impure = /\b(Date\.now|performance\.|setTimeout|setInterval|setImmediate|Math\.random|process\.)/;
    const faults = [...files.keys()]
      .filter((path) => layerOf(path) === "domain")
      .filter((path) => impure.test(withoutComments(readFileSync(join(root, path), "utf8"))));
    expect(faults).toEqual([]);
  });
});

test("no import cycles, type imports included", () => {
  expect(findCycle(files)).toBeUndefined();
});

test("the search for cycles finds one", () => {
  const looped = new Map([
    ["a.ts", ["b.ts"]],
    ["b.ts", ["c.ts", "d.ts"]],
    ["c.ts", []],
    ["d.ts", ["b.ts"]],
  ]);
  expect(findCycle(looped)).toEqual(["b.ts", "d.ts", "b.ts"]);
});

test("no source file is longer than 400 lines", () => {
  const long = [...files.keys()]
    .map((path) => ({ path, lines: readFileSync(join(root, path), "utf8").split("\n").length - 1 }))
    .filter(({ lines }) => lines > 400);
  expect(long).toEqual([]);
});

function layerOf(path: string): string {
  const [folder, file] = path.split("/");
  return file === undefined || folder === undefined ? "root" : folder;
}

function importsOf(path: string, text: string): string[] {
  const found = withoutComments(text).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g);
  return [...new Set([...found].map(([, target]) => target as string))].map((target) =>
    target.startsWith(".") ? posix.join(posix.dirname(path), target).replace(/\.js$/, ".ts") : target,
  );
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}

function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (file: string): string[] | undefined => {
    const at = trail.indexOf(file);
    if (at >= 0) return [...trail.slice(at), file];
    if (done.has(file)) return undefined;
    trail.push(file);
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next);
      if (cycle !== undefined) return cycle;
    }
    trail.pop();
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const cycle = visit(file);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
