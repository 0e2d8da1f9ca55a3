import { readFileSync, writeFileSync } from "node:fs";
import type { Machine } from "./machine.js";

const BEGIN = "<!-- results: written by `npm run bench -- all --markdown`; do not edit -->";
const END = "<!-- end of results -->";

export interface ResultsInfo {
  readonly command: string;
  readonly finishedAt: Date;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
}

/** Replaces the results between the markers of a README. @throws when the markers are not there. */
export function writeResults(file: URL, info: ResultsInfo, table: string, details: readonly string[]): void {
  const text = readFileSync(file, "utf8");
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error(`${file.pathname} has no place for results between its markers`);
  const { machine, versions } = info;
  const results = [
    `\`${info.command}\`, ${info.finishedAt.toISOString()}.`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}, load ${machine.loadBefore} before the run; ${Object.entries(
      versions,
    )
      .map(([name, version]) => `${name} ${version}`)
      .join(", ")}.`,
    "Medians over the rounds, smallest and largest round in parentheses; CPU in µs per message, subject / reference.",
    table,
    details.map((line) => `- ${line}`).join("\n"),
  ].join("\n\n");
  writeFileSync(file, `${text.slice(0, begin)}${BEGIN}\n\n${results}\n\n${text.slice(end)}`);
}
