import { mkdirSync, writeFileSync } from "node:fs";
import { root } from "./run.mjs";

const lastSummary = new URL("node_modules/.lanekeeper/summary.txt", root);

/** More faults than this are a fault of their own; the first say what it is. */
const NAMED_FAULTS = 10;

/** Collects the steps of a test run and what they counted. */
export class Summary {
  #steps = [];

  /**
   * Runs a step that counts tests, or whose exit code counts as one failed test when it is not 0.
   *
   * @param {string} name
   * @param {() => Promise<number | { passed: number, failed: number, skipped: number, faults?: string[] }>} work
   */
  async step(name, work) {
    console.log(`\n== ${name}`);
    const startedAt = performance.now();
    const result = await work();
    const counts =
      typeof result === "number" ? { passed: 0, failed: result === 0 ? 0 : 1, skipped: 0 } : result;
    this.#steps.push({
      name,
      seconds: (performance.now() - startedAt) / 1_000,
      isTests: typeof result !== "number",
      ...counts,
    });
  }

  get failed() {
    return this.#sum("failed");
  }

  /** What failed, one line for each step, and as the last line `tests: N passed, M failed`, which is also left in a file. */
  print(file = lastSummary) {
    for (const fault of this.#steps.flatMap((step) => step.faults ?? []).slice(0, NAMED_FAULTS)) {
      console.log(`\nFAILED ${fault}`);
    }
    console.log("");
    for (const step of this.#steps) {
      const verdict = step.failed > 0 ? "FAILED" : "ok";
      const counts = step.isTests
        ? `  ${step.passed} passed, ${step.failed} failed, ${step.skipped} skipped`
        : "";
      console.log(`${verdict.padEnd(6)} ${step.seconds.toFixed(1).padStart(6)} s  ${step.name}${counts}`);
    }
    const line = `tests: ${this.#sum("passed")} passed, ${this.failed} failed`;
    mkdirSync(new URL(".", lastSummary), { recursive: true });
    writeFileSync(file, `${line}\n`);
    console.log(line);
  }

  #sum(count) {
    return this.#steps.reduce((total, step) => total + step[count], 0);
  }
}
