import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder that holds the whole project, with a slash at its end. */
export const ROOT = fileURLToPath(new URL(rootUrl(), import.meta.url));

/** One Markdown file of the project. */
export interface MarkdownPage {
  /** From the project's folder: `docs/guarantees.md`. */
  readonly path: string;
  readonly text: string;
  readonly snippets: readonly Snippet[];
  /** The text with fenced code blanked out, line by line. */
  readonly prose: string;
  /** Targets of inline links in the prose, as written. */
  readonly links: readonly string[];
  /** Texts of inline code in the prose. */
  readonly codeWords: readonly string[];
}

/** A fenced piece of code. */
export interface Snippet {
  /** All that follows the opening fence: `ts`, `ts fragment`, `sh`. */
  readonly info: string;
  readonly code: string;
  /** The line of the page on which the code begins, from 1. */
  readonly line: number;
}

/** Every page that users or contributors read: at the root, under docs, and the packages' own. */
export function readPages(): MarkdownPage[] {
  const inDocs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).map((name) =>
    join("docs", name),
  );
  const inPackages = readdirSync(join(ROOT, "packages")).flatMap((name) =>
    readdirSync(join(ROOT, "packages", name)).map((file) => join("packages", name, file)),
  );
  return [...readdirSync(ROOT), ...inDocs, ...inPackages]
    .filter((path) => path.endsWith(".md"))
    .sort()
    .map((path) => parsePage(path, readFileSync(join(ROOT, path), "utf8")));
}

export function parsePage(path: string, text: string): MarkdownPage {
  const snippets: Snippet[] = [];
  const prose: string[] = [];
  let open: { info: string; line: number; code: string[] } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (fence !== null && open === undefined) open = { info: fence[1] ?? "", line: index + 2, code: [] };
    else if (fence !== null && open !== undefined) {
      snippets.push({ info: open.info, line: open.line, code: `${open.code.join("\n")}\n` });
      open = undefined;
    } else if (open !== undefined) open.code.push(line);
    prose.push(fence === null && open === undefined ? line : "");
  }
  if (open !== undefined) throw new Error(`${path}:${open.line}: the code is never closed`);
  const plain = prose.join("\n");
  return {
    path,
    text,
    snippets,
    prose: plain,
    links: [...plain.replace(INLINE_CODE, "").matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? ""),
    codeWords: [...plain.matchAll(INLINE_CODE)].map((match) => match[1] ?? ""),
  };
}

/** Why a link of a page leads nowhere; undefined when it does not. Links to other hosts are not followed. */
export function linkFault(
  page: MarkdownPage,
  link: string,
  pages: readonly MarkdownPage[],
): string | undefined {
  if (/^(?:https?:|mailto:)/.test(link)) return undefined;
  const [file = "", anchor] = link.split("#");
  const path = file === "" ? page.path : relative(ROOT, join(ROOT, dirname(page.path), file));
  const target = pages.find((one) => one.path === path);
  if (target === undefined) {
    try {
      readFileSync(join(ROOT, path));
    } catch {
      return `${page.path}: ${link} leads to ${path}, which is not there`;
    }
    return undefined;
  }
  if (anchor === undefined || anchorsOf(target).includes(anchor)) return undefined;
  return `${page.path}: ${link}: ${path} has no heading #${anchor}`;
}

const INLINE_CODE = /`([^`\n]+)`/g;

/** Anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: MarkdownPage): string[] {
  return [...page.prose.matchAll(/^#{1,6} (.+)$/gm)].map((match) =>
    (match[1] ?? "")
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** Tests run from source, child programs from `dist`. */
function rootUrl(): string {
  return import.meta.url.includes("/test/dist/") ? "../../../" : "../../";
}
