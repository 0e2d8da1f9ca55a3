import { median, type Spread, spread } from "./median.js";
import type { Trial } from "./trial.js";

/** One subject beside one reference: medians over the rounds. `spread` is the smallest and the largest round. */
export interface Row {
  /** The case, for example `consume 64 lanes`. */
  readonly name: string;
  readonly subject: string;
  readonly msgsPerSecond: number;
  readonly spread: Spread;
  readonly reference: string;
  readonly referenceMsgsPerSecond: number;
  readonly referenceSpread: Spread;
  /** `msgsPerSecond` ÷ `referenceMsgsPerSecond`. */
  readonly ratio: number;
  /** Of the ratios of the single rounds. */
  readonly ratioSpread: Spread;
  /** Of the processes that publish or handle. */
  readonly cpuMicrosPerMessage: number;
  readonly referenceCpuMicrosPerMessage: number;
  /** Of all server processes; null where it cannot be read. */
  readonly serverCpuMicrosPerMessage: number | null;
  readonly referenceServerCpuMicrosPerMessage: number | null;
  /** The sum over all rounds. */
  readonly orderFaults: number;
  readonly referenceOrderFaults: number;
  readonly rounds: number;
  /** The arithmetic limit of the workload, where there is one. */
  readonly idealMsgsPerSecond?: number;
  readonly idealRatio?: number;
  /** Medians of what else was measured, by name. */
  readonly details?: Readonly<Record<string, number>>;
  readonly referenceDetails?: Readonly<Record<string, number>>;
}

/** Several rounds of one contestant. */
export interface Series {
  readonly name: string;
  readonly trials: readonly Trial[];
}

/** `subject` and `reference` have the same number of trials, in the order of the rounds. */
export function rowOf(name: string, subject: Series, reference: Series, ideal: number | undefined): Row {
  const rates = subject.trials.map(rate);
  const referenceRates = reference.trials.map(rate);
  const msgsPerSecond = median(rates);
  const referenceMsgsPerSecond = median(referenceRates);
  const details = mediansOf(subject.trials);
  const referenceDetails = mediansOf(reference.trials);
  return {
    name,
    subject: subject.name,
    msgsPerSecond: rounded(msgsPerSecond),
    spread: roundedSpread(rates),
    reference: reference.name,
    referenceMsgsPerSecond: rounded(referenceMsgsPerSecond),
    referenceSpread: roundedSpread(referenceRates),
    ratio: rounded(msgsPerSecond / referenceMsgsPerSecond),
    ratioSpread: roundedSpread(rates.map((value, round) => value / (referenceRates[round] ?? Number.NaN))),
    cpuMicrosPerMessage: rounded(median(subject.trials.map(cpu))),
    referenceCpuMicrosPerMessage: rounded(median(reference.trials.map(cpu))),
    serverCpuMicrosPerMessage: serverCpu(subject.trials),
    referenceServerCpuMicrosPerMessage: serverCpu(reference.trials),
    orderFaults: sum(subject.trials),
    referenceOrderFaults: sum(reference.trials),
    rounds: rates.length,
    ...(ideal === undefined
      ? {}
      : { idealMsgsPerSecond: rounded(ideal), idealRatio: rounded(msgsPerSecond / ideal) }),
    ...(details === undefined ? {} : { details }),
    ...(referenceDetails === undefined ? {} : { referenceDetails }),
  };
}

function rate(trial: Trial): number {
  return trial.messages / trial.seconds;
}

function cpu(trial: Trial): number {
  return trial.cpuMicros / trial.messages;
}

function serverCpu(trials: readonly Trial[]): number | null {
  const micros = trials.flatMap(({ serverCpuMicros, messages }) =>
    serverCpuMicros === undefined ? [] : [serverCpuMicros / messages],
  );
  return micros.length < trials.length ? null : rounded(median(micros));
}

function sum(trials: readonly Trial[]): number {
  return trials.reduce((total, trial) => total + trial.orderFaults, 0);
}

function mediansOf(trials: readonly Trial[]): Record<string, number> | undefined {
  const names = new Set(trials.flatMap(({ details }) => Object.keys(details ?? {})));
  if (names.size === 0) return undefined;
  return Object.fromEntries(
    [...names].map((name) => [name, rounded(median(trials.flatMap(({ details }) => details?.[name] ?? [])))]),
  );
}

function roundedSpread(values: readonly number[]): Spread {
  const { min, max } = spread(values);
  return { min: rounded(min), max: rounded(max) };
}

/** Four significant digits: more would pretend a precision that no run on a shared machine has. */
function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
