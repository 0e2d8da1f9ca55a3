import type { HistoryEntry, HistoryRecord } from "./history-record.js";

/**
 * A history written by hand, to show what a checker accepts and what it does not. Times are milliseconds; records
 * come out in order of time, as a reader's do.
 */
export class PlantedHistory {
  readonly #records: HistoryRecord[] = [];
  readonly #counters = new Map<string, number>();
  #runs = 0;

  get records(): HistoryRecord[] {
    return [...this.#records].sort((a, b) => a.atMs - b.atMs);
  }

  add(process: string, atMs: number, entry: HistoryEntry): this {
    const n = (this.#counters.get(process) ?? 0) + 1;
    this.#counters.set(process, n);
    this.#records.push({ process, n, atMs, wallMs: atMs, ...entry });
    return this;
  }

  start(process: string, key: string, seq: number, atMs: number, group = "g"): this {
    return this.#start(process, atMs, { key, seq, group });
  }

  /** A start that was given a fence token, as owned lanes give one. */
  fencedStart(
    process: string,
    key: string,
    seq: number,
    atMs: number,
    fence: { readonly token: number; readonly incarnation?: string; readonly group?: string },
  ): this {
    const { token, incarnation = "first", group = "g" } = fence;
    return this.#start(process, atMs, { key, seq, group, data: { fence: token, incarnation } });
  }

  run(
    process: string,
    key: string,
    seq: number,
    fromMs: number,
    untilMs: number,
    outcome: "handled" | "failed" = "handled",
    group = "g",
  ): this {
    this.start(process, key, seq, fromMs, group);
    return this.add(process, untilMs, { kind: "handler-end", run: this.#runs, group, key, seq, outcome });
  }

  notify(process: string, atMs: number, type: string, seq: number, group = "g"): this {
    return this.add(process, atMs, { kind: "notification", type, seq, group });
  }

  /** What a worker tells after its event loop has stood still. */
  blocked(process: string, fromMs: number, untilMs: number): this {
    const lateMs = untilMs - fromMs;
    return this.add(process, untilMs, { kind: "notification", type: "loop-blocked", lateMs });
  }

  publish(process: string, key: string, call: number, answer: { seq: number } | "refused" | "unknown"): this {
    this.add(process, call, { kind: "publish-call", call, key });
    if (typeof answer === "object") {
      const { seq } = answer;
      return this.add(process, call, { kind: "publish-settled", call, key, seq, lane: 0, duplicate: false });
    }
    const refused = answer === "refused";
    return this.add(process, call, { kind: "publish-failed", call, key, error: answer, refused });
  }

  #start(
    process: string,
    atMs: number,
    about: { key: string; seq: number; group: string; data?: { fence: number; incarnation: string } },
  ): this {
    this.#runs += 1;
    return this.add(process, atMs, {
      kind: "handler-start",
      run: this.#runs,
      lane: 0,
      attempt: 1,
      ...about,
    });
  }
}
