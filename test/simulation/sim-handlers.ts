import type { LaneEvent } from "../../packages/core/src/domain/event.js";
import { SeededRandom } from "../harness/seeded-random.js";
import type { LaneJudge } from "./lane-judge.js";
import type { HandlerPlan, Scenario } from "./scenario.js";
import type { SimHistory } from "./sim-history.js";
import type { SimProcess } from "./sim-process.js";
import type { Timeline } from "./timeline.js";

/** Deaths after which a poisonous event has to be found out: its limit of three, and as many by coincidence and more. */
const mostDeaths = 12;

export interface SimHandlersParts {
  readonly group: string;
  readonly scenario: Scenario;
  readonly timeline: Timeline;
  readonly history: SimHistory;
  readonly judge: LaneJudge;
  /** Kills the process of a handler. */
  readonly kill: (process: SimProcess) => void;
}

/** What the handlers of a simulated deployment do: each event takes its time and fails as its seed has it. */
export class SimHandlers {
  /** Events that were handled or dropped, by sequence. */
  readonly settled = new Set<number>();
  readonly #group: string;
  readonly #scenario: Scenario;
  readonly #timeline: Timeline;
  readonly #history: SimHistory;
  readonly #judge: LaneJudge;
  readonly #kill: (process: SimProcess) => void;
  readonly #plans = new Map<number, HandlerPlan>();
  #poisoned = 0;

  constructor({ group, scenario, timeline, history, judge, kill }: SimHandlersParts) {
    this.#group = group;
    this.#scenario = scenario;
    this.#timeline = timeline;
    this.#history = history;
    this.#judge = judge;
    this.#kill = kill;
  }

  async handle(
    process: SimProcess,
    event: LaneEvent<Record<string, unknown>>,
    context: { readonly signal: AbortSignal; readonly fence: { readonly token: number } },
  ): Promise<void> {
    const { key, seq, lane, attempt } = event;
    const plan = this.#planOf(seq);
    this.#judge.started(process.name, lane, seq, context.fence.token, this.settled.has(seq));
    const run = this.#history.startRun(process.name, {
      group: this.#group,
      key,
      seq,
      lane,
      attempt,
      data: { fence: context.fence.token },
    });
    if (seq === this.#scenario.poison) return this.#die(process);
    const tries = this.#history.triesOf(seq);
    const aborted = await this.#work(process, plan, context.signal, run);
    const failed = tries <= plan.failures || (aborted && !plan.stubborn);
    this.#history.add(process.name, {
      kind: "handler-end",
      run,
      group: this.#group,
      key,
      seq,
      outcome: failed ? "failed" : "handled",
    });
    if (failed) throw new Error(aborted ? "aborted" : "planned failure");
    this.settled.add(seq);
  }

  /** What a poisonous event does to its process. */
  #die(process: SimProcess): Promise<never> {
    process.clock.after(2, () => {
      if (!process.alive) return;
      if (++this.#poisoned === mostDeaths)
        this.#judge.faults.push({
          invariant: "O4",
          atMs: this.#timeline.now,
          text: `event ${this.#scenario.poison} killed ${mostDeaths} processes and was not found out`,
        });
      this.#kill(process);
    });
    return new Promise(() => {});
  }

  /** Resolves when the work is done, or at once when the signal aborts: true then. */
  #work(process: SimProcess, plan: HandlerPlan, signal: AbortSignal, run: number): Promise<boolean> {
    return new Promise((resolve) => {
      let aborted = signal.aborted;
      const timer = process.clock.after(plan.ms, () => resolve(aborted));
      const abort = () => {
        aborted = true;
        this.#history.aborted(process.name, run);
        if (plan.stubborn) return;
        timer.stop();
        resolve(true);
      };
      if (aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
  }

  #planOf(seq: number): HandlerPlan {
    const known = this.#plans.get(seq);
    if (known !== undefined) return known;
    const { slowHandlers, failingHandlers, stubbornHandlers, seed } = this.#scenario;
    const random = new SeededRandom(seed * 8_191 + seq);
    const slow = random.chance(slowHandlers);
    const plan: HandlerPlan = {
      ms: slow ? random.between(200, 3_000) : random.between(1, 40),
      failures: random.chance(failingHandlers) ? random.int(1, 5) : 0,
      stubborn: random.chance(stubbornHandlers),
    };
    this.#plans.set(seq, plan);
    return plan;
  }
}
