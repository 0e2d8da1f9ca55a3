import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** One archive that the machine's apt is configured with. */
export interface AptSource {
  uri: string;
  suites: readonly string[];
  components: readonly string[];
  /** Path of the keyring that its signatures are checked with, when it names one. */
  signedBy?: string;
}

/**
 * The archives in `sources.list` and `sources.list.d`, both the one-line and the deb822 format; disabled ones and
 * those of source code left out. An unreadable or missing file counts as empty.
 *
 * @param folder `/etc/apt`
 */
export async function readAptSources(folder: string): Promise<AptSource[]> {
  const parts = join(folder, "sources.list.d");
  const names = (await readdir(parts).catch(() => [])).sort();
  const sources = parseOneLine(await textOf(join(folder, "sources.list")));
  for (const name of names) {
    const text = await textOf(join(parts, name));
    if (name.endsWith(".list")) sources.push(...parseOneLine(text));
    if (name.endsWith(".sources")) sources.push(...parseDeb822(text));
  }
  return sources;
}

/** `deb [signed-by=/path arch=amd64] URI suite component…` */
export function parseOneLine(text: string): AptSource[] {
  const sources: AptSource[] = [];
  for (const line of text.split("\n")) {
    const found = /^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s*([^#]*)/.exec(line);
    if (found === null) continue;
    const [, options = "", uri = "", suite = "", components = ""] = found;
    const signedBy = /(?:^|\s)signed-by=(\S+)/i.exec(options)?.[1];
    sources.push(source(uri, [suite], words(components), signedBy));
  }
  return sources;
}

/** Paragraphs of `Field: value`, with continuation lines that begin with a space. */
export function parseDeb822(text: string): AptSource[] {
  const sources: AptSource[] = [];
  for (const paragraph of text.replace(/^#.*\n?/gm, "").split(/\n\s*\n/)) {
    const fields = new Map<string, string>();
    let last = "";
    for (const line of paragraph.split("\n")) {
      const found = /^([A-Za-z][\w-]*)\s*:\s*(.*)$/.exec(line);
      if (found !== null) {
        last = (found[1] ?? "").toLowerCase();
        fields.set(last, found[2] ?? "");
      } else if (/^\s/.test(line) && last !== "") {
        fields.set(last, `${fields.get(last) ?? ""}\n${line.trim()}`);
      }
    }
    const field = (name: string): string[] => words(fields.get(name) ?? "");
    if (!field("types").includes("deb") || /^(no|false|0)$/i.test(fields.get("enabled") ?? "")) continue;
    for (const uri of field("uris")) {
      sources.push(source(uri, field("suites"), field("components"), fields.get("signed-by")));
    }
  }
  return sources;
}

/** A key that stands in the file itself, or is named by its fingerprint, is not a keyring's path. */
function source(
  uri: string,
  suites: string[],
  components: string[],
  signedBy: string | undefined,
): AptSource {
  const keyring = signedBy?.trim();
  return { uri, suites, components, ...(keyring && /^\/\S+$/.test(keyring) ? { signedBy: keyring } : {}) };
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

async function textOf(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "");
}
