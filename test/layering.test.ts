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

/** The direction of imports between partitioner, domain, runtime and nats is held by layers.test.ts; this is the rest. */
describe("imports within core", () => {
  test("testing stands on the domain alone, so that a harness needs no part of a worker", () => {
    const faults = [...files]
      .filter(([path]) => layerOf(path) === "testing")
      .flatMap(([path, imports]) =>
        imports
          .filter((target) => target.endsWith(".ts") && !["domain", "testing"].includes(layerOf(target)))
          .map((target) => `${path} imports ${target}`),
      );
    expect(faults).toEqual([]);
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
