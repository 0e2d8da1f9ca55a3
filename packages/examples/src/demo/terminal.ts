import cliProgress from "cli-progress";
import pico from "picocolors";

const PLAIN_INTERVAL_MS = 5_000;

/** One piece of work whose progress is shown. */
export interface ProgressLine {
  update(done: number): void;
  /** Ends the line and leaves `text` in its place. */
  finish(text: string): void;
}

/**
 * What the demo writes to: a line that lives while work goes on where a terminal can show one, and plain lines
 * without any control characters in a pipe or a file.
 */
export class Terminal implements AsyncDisposable {
  /** Emphasis; does nothing where there is no terminal or the user has set NO_COLOR. */
  readonly colors: ReturnType<typeof pico.createColors>;
  readonly #live: boolean;
  #bar: cliProgress.SingleBar | undefined;

  constructor() {
    this.#live = process.stdout.isTTY === true && process.env["TERM"] !== "dumb";
    this.colors = pico.createColors(this.#live && !process.env["NO_COLOR"]);
  }

  print(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** @param total absent where it is not known how much there will be */
  progress(label: string, total?: number): ProgressLine {
    return this.#live ? this.#liveLine(label, total) : this.#plainLine(label, total);
  }

  /** Gives the cursor back if a line was still alive. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  #liveLine(label: string, total: number | undefined): ProgressLine {
    const startedAt = performance.now();
    const counted = total === undefined ? "{count}" : "{bar} {count} of {all}";
    const bar = new cliProgress.SingleBar({
      stream: process.stdout,
      format: `  {label} ${counted}  {rate}/s`,
      barsize: 24,
      barCompleteChar: "█",
      barIncompleteChar: "░",
      hideCursor: true,
      clearOnComplete: true,
      linewrap: false,
      fps: 10,
    });
    const payload = (done: number): object => ({
      label: label.padEnd(13),
      count: formatCount(done),
      all: formatCount(total ?? 0),
      rate: formatCount(Math.round((done / (performance.now() - startedAt)) * 1000)),
    });
    bar.start(total ?? 1, 0, payload(0));
    this.#bar = bar;
    return {
      update: (done) => bar.update(Math.min(done, total ?? 1), payload(done)),
      finish: (text) => {
        bar.stop();
        this.#bar = undefined;
        this.print(`  ${text}`);
      },
    };
  }

  #plainLine(label: string, total: number | undefined): ProgressLine {
    let shownAt = performance.now();
    return {
      update: (done) => {
        const now = performance.now();
        if (now - shownAt < PLAIN_INTERVAL_MS) return;
        shownAt = now;
        const all = total === undefined ? "" : ` of ${formatCount(total)}`;
        this.print(`  ${label.padEnd(13)} ${formatCount(done)}${all} …`);
      },
      finish: (text) => this.print(`  ${text}`),
    };
  }
}

const COUNT = new Intl.NumberFormat("en-GB");

export function formatCount(count: number): string {
  return COUNT.format(count);
}

/** A whole number of events, in words. */
export function formatEvents(count: number): string {
  return `${formatCount(count)} ${count === 1 ? "event" : "events"}`;
}
