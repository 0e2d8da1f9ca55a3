import Table from "cli-table3";
import colors from "picocolors";
import type { Row } from "../measure/row.js";

const HEAD = [
  "benchmark",
  "subject",
  "reference",
  "msgs/s",
  "reference",
  "ratio",
  "CPU µs",
  "server µs",
  "faults",
];

/** Rows as a table for a terminal or a file; colours only where the terminal has them. */
export function tableOf(rows: readonly Row[]): string {
  const table = new Table({
    head: HEAD,
    style: { head: [], border: [], compact: true },
    colAligns: ["left", "left", "left", "right", "right", "right", "right", "right", "right"],
    // Wide terminals and files show it as it is; nothing is cut.
    wordWrap: true,
  });
  for (const row of rows) table.push(cells(row));
  return table.toString();
}

/** The figures that have no column, one line for each row that has any. */
export function detailLines(rows: readonly Row[]): string[] {
  return rows.flatMap((row) => {
    const own = figures(row.details);
    const reference = figures(row.referenceDetails);
    const ideal =
      row.idealMsgsPerSecond === undefined
        ? ""
        : `ideal ${number(row.idealMsgsPerSecond)}/s, of which ${percent(row.idealRatio ?? 0)}`;
    const parts = [ideal, own].filter((part) => part !== "");
    if (parts.length === 0 && reference === "") return [];
    const beside = reference === "" ? "" : `; ${row.reference}: ${reference}`;
    return [`${row.name}, ${row.subject}: ${parts.join(", ")}${beside}`];
  });
}

/** Rows as a table of Markdown. */
export function markdownOf(rows: readonly Row[]): string {
  const lines = [HEAD, HEAD.map((_, column) => (column < 3 ? "---" : "---:")), ...rows.map(plainCells)];
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
}

function cells(row: Row): string[] {
  const plain = plainCells(row);
  const faults = plain.pop() ?? "";
  return [...plain, row.orderFaults > 0 ? colors.red(faults) : faults];
}

function plainCells(row: Row): string[] {
  return [
    row.name,
    row.subject,
    row.reference,
    `${number(row.msgsPerSecond)} (${number(row.spread.min)}–${number(row.spread.max)})`,
    `${number(row.referenceMsgsPerSecond)} (${number(row.referenceSpread.min)}–${number(row.referenceSpread.max)})`,
    `${row.ratio.toFixed(2)} (${row.ratioSpread.min.toFixed(2)}–${row.ratioSpread.max.toFixed(2)})`,
    `${micros(row.cpuMicrosPerMessage)} / ${micros(row.referenceCpuMicrosPerMessage)}`,
    `${micros(row.serverCpuMicrosPerMessage)} / ${micros(row.referenceServerCpuMicrosPerMessage)}`,
    `${row.orderFaults} / ${row.referenceOrderFaults}`,
  ];
}

function figures(details: Readonly<Record<string, number>> | undefined): string {
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name} ${number(value)}`)
    .join(", ");
}

function number(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 4 });
}

function micros(value: number | null): string {
  return value === null || Number.isNaN(value) ? "–" : number(value);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
