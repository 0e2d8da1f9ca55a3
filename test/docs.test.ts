import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { minimumServerVersion } from "@lanekeeper/core";
import { openDatabase } from "@lanekeeper/examples/dist/customer-events/database.js";
import { describe, expect, test } from "vitest";
import { linkFault, parsePage, ROOT, readPages } from "./harness/markdown.js";

const pages = readPages();
const page = (path: string) => {
  const found = pages.find((one) => one.path === path);
  if (found === undefined) throw new Error(`${path} is missing`);
  return found;
};

describe("snippets", () => {
  test("every TypeScript snippet compiles, and every name the prose gives exists on the public surface", () => {
    const modules = new Map<string, string>();
    for (const { path, snippets } of pages) {
      for (const { info, code, line } of snippets) {
        // Blank lines before it: the compiler then names the line of the page.
        if (info === "ts")
          modules.set(moduleName(path, line), `${"\n".repeat(line - 1)}${code}\nexport {};\n`);
      }
    }
    expect(modules.size).toBeGreaterThanOrEqual(12);
    const planted = 'import { openLanes } from "@lanekeeper/core";\nawait openLanes(1, { stream: 2 });\n';
    modules.set("planted.mts", planted);
    // In the page on other languages `lanes.fnv1a` is a field of the vectors.
    const spoken = pages.filter(({ path }) => path !== "docs/guides/other-languages.md");
    modules.set(
      "names.mts",
      namesModule(["lanes.notThere", ...spoken.flatMap(({ codeWords }) => codeWords)]),
    );
    const faults = compile(modules);
    // Both planted faults are found, and nothing else is.
    expect(faults.filter((line) => line.startsWith("planted.mts"))).not.toEqual([]);
    expect(faults.filter((line) => line.startsWith("names.mts"))).toEqual([
      expect.stringContaining("notThere"),
    ]);
    expect(faults.filter((line) => /^(?!planted|names)\S+\.mts/.test(line))).toEqual([]);
  });

  test("snippets that cannot stand alone are few, and none hides under another name", () => {
    const infos = pages.flatMap(({ path, snippets }) => snippets.map(({ info }) => ({ path, info })));
    const fragments = infos.filter(({ info }) => info === "ts fragment");
    expect(fragments.length, JSON.stringify(fragments)).toBeLessThanOrEqual(6);
    const known = ["", "ts", "ts fragment", "sh", "sql", "python", "go", "json", "text", "yaml", "conf"];
    expect(infos.filter(({ info }) => !known.includes(info))).toEqual([]);
  });

  test("the README's example is packages/examples/src/publish-and-work.ts, in at most 20 lines", () => {
    const example = readFileSync(join(ROOT, "packages/examples/src/publish-and-work.ts"), "utf8");
    const [first] = page("README.md").snippets;
    expect(first?.code).toBe(example);
    expect(example.trimEnd().split("\n").length).toBeLessThanOrEqual(20);
  });

  test("O6: the fence's SQL refuses a lower token of the same incarnation, and nothing else", () => {
    const sql = page("docs/guarantees.md").snippets.find(({ info }) => info === "sql")?.code ?? "";
    const [create = "", take = ""] = sql.split(/;\n\n/);
    const inGuide = page("docs/guides/effects-and-fencing.md").text;
    expect(oneLine(inGuide)).toContain(oneLine(take.replace(/^--.*$/gm, "")).replace(/;$/, ""));
    const database = openDatabase(":memory:");
    try {
      database.exec(create);
      const statement = database.prepare(take.replace(/\$(\d)/g, "?"));
      const takes = (key: string, incarnation: string, token: number) =>
        statement.run("billing", key, incarnation, token).changes;
      expect(takes("k", "one", 2049), "the key's first").toBe(1);
      expect(takes("k", "one", 2049), "a retry").toBe(1);
      expect(takes("k", "one", 3073), "the next event").toBe(1);
      expect(takes("k", "one", 2050), "overtaken").toBe(0);
      expect(takes("other", "one", 1025), "another key").toBe(1);
      expect(takes("k", "two", 1025), "another incarnation").toBe(1);
      expect(takes("k", "two", 1025), "its retry").toBe(1);
    } finally {
      database.close();
    }
  });
});

describe("pages", () => {
  test("every relative link leads to a file, and to a heading where it names one", () => {
    const faults = pages.flatMap((one) => one.links.map((link) => linkFault(one, link, pages)));
    expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
  });

  test("a link that leads nowhere is found", () => {
    const planted = parsePage(
      "docs/planted.md",
      "[a](nowhere.md) [b](guarantees.md#nothing) [c](glossary.md)",
    );
    const faults = planted.links.map((link) => linkFault(planted, link, pages));
    expect(faults).toEqual([expect.any(String), expect.any(String), undefined]);
  });

  test("every page under docs is listed in docs/README.md", () => {
    const listed = page("docs/README.md").links.map((link) => `docs/${link}`);
    const unlisted = pages.map(({ path }) => path).filter((path) => path.startsWith("docs/"));
    expect(unlisted.filter((path) => path !== "docs/README.md" && !listed.includes(path))).toEqual([]);
  });

  test("decision records have their sections and numbers of their own", () => {
    const names = readdirSync(join(ROOT, "docs/adr"));
    const numbers = names.map((name) => name.slice(0, 4));
    expect(new Set(numbers).size).toBe(numbers.length);
    for (const name of names) {
      const { text } = page(`docs/adr/${name}`);
      expect(text, name).toMatch(new RegExp(`^# ${Number(name.slice(0, 4))}\\. `));
      for (const section of ["Context", "Decision"]) expect(text, name).toContain(`\n## ${section}\n`);
    }
  });

  test("the record on dependencies gives a reason for each one of every package", () => {
    const manifests = ["package.json", "test/package.json", "bench/package.json"].concat(
      readdirSync(join(ROOT, "packages")).map((name) => `packages/${name}/package.json`),
    );
    const named = page("docs/adr/0001-dependencies.md").codeWords;
    for (const path of manifests) {
      const manifest: Record<"dependencies" | "devDependencies", Record<string, string> | undefined> =
        JSON.parse(readFileSync(join(ROOT, path), "utf8"));
      for (const name of Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })) {
        if (!name.startsWith("@lanekeeper/")) expect(named, `${name} of ${path}`).toContain(name);
      }
    }
  });

  test("no page speaks of how the project is made, or of what is left to do", () => {
    const forbidden = /\bissues? #?\d|\bsessions? \d|\bTO-?DO\b|\bFIX-?ME\b|\/work\/|\/tmp\/helper/i;
    const found = pages.flatMap(({ path, text }) =>
      text.split("\n").flatMap((line) => (forbidden.test(line) ? [`${path}: ${line}`] : [])),
    );
    expect(found).toEqual([]);
  });

  test("README and core's page name the oldest server and Node.js that the code accepts", () => {
    const manifest: { engines: { node: string } } = JSON.parse(
      readFileSync(join(ROOT, "packages/core/package.json"), "utf8"),
    );
    for (const path of ["README.md", "packages/core/README.md"]) {
      const { text } = page(path);
      expect(text, path).toContain(`nats-server ${minimumServerVersion.replace(/\.0$/, "")} or later`);
      expect(text, path).toContain(`Node.js ${manifest.engines.node.replace(">=", "")} or later`);
    }
  });

  test("every package carries the licence", () => {
    const licence = readFileSync(join(ROOT, "LICENSE"), "utf8");
    expect(licence).toContain("Apache License\n                           Version 2.0");
    for (const name of readdirSync(join(ROOT, "packages"))) {
      expect(readFileSync(join(ROOT, "packages", name, "LICENSE"), "utf8"), name).toBe(licence);
    }
  });
});

/** `docs/guides/x.md`, 12 → `docs-guides-x.md.12.mts`. */
function moduleName(path: string, line: number): string {
  return `${path.replaceAll("/", "-")}.${line}.mts`;
}

/** What a page calls `lanes`, `worker` and so on, as public types. */
const SUBJECTS: Readonly<Record<string, string>> = {
  lanes: "Lanes<never>",
  publisher: 'ReturnType<Lanes<never>["publisher"]>',
  worker: "LaneWorker",
  group: "Group",
  context: "HandlerContext",
  fence: "Fence",
};

/** Variables of the environment, which look like codes. */
const ENVIRONMENT = /^(?:LANEKEEPER_|NATS_URL$|NATS_SERVER_BIN$|NO_COLOR$)|_PROXY$/;

/** A module that names every property and code which inline code of the pages speaks of. */
function namesModule(words: readonly string[]): string {
  const lines = new Set<string>();
  for (const word of words) {
    const [, subject = "", property = ""] = /^([a-z]+)\.(?!ts$)(\w+)/.exec(word) ?? [];
    const type = SUBJECTS[subject];
    if (type !== undefined) lines.add(`export type _${subject}_${property} = ${type}["${property}"];`);
    const isCode = /^[A-Z]+(_[A-Z]+)+$/.test(word) && !ENVIRONMENT.test(word);
    if (isCode) lines.add(`export const ${word}: ErrorCode | PartitionerErrorCode = "${word}";`);
  }
  expect(lines.size).toBeGreaterThan(20);
  return [
    'import type { ErrorCode, Fence, Group, HandlerContext, Lanes, LaneWorker } from "@lanekeeper/core";',
    'import type { PartitionerErrorCode } from "@lanekeeper/partitioner";',
    ...lines,
  ].join("\n");
}

/** Compiles modules that may import what the tests may, in one go; returns the compiler's complaints. */
function compile(modules: ReadonlyMap<string, string>): string[] {
  const folder = mkdtempSync(join(ROOT, "test/node_modules/.lanekeeper-docs-"));
  try {
    for (const [name, text] of modules) writeFileSync(join(folder, name), text);
    const config = {
      extends: "../../../tsconfig.base.json",
      compilerOptions: {
        noEmit: true,
        composite: false,
        declaration: false,
        declarationMap: false,
        sourceMap: false,
        typeRoots: [join(ROOT, "node_modules/@types")],
      },
      files: [...modules.keys()],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    const args = [compiler, "-p", folder, "--pretty", "false"];
    const { stdout, stderr, error } = spawnSync(process.execPath, args, {
      cwd: folder,
      encoding: "utf8",
      timeout: 55_000,
    });
    if (error !== undefined) throw error;
    return `${stdout}${stderr}`.split("\n").filter((line) => line.trim() !== "");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
