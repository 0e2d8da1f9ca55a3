/** What one subject did in one round. */
export interface Trial {
  /** Events whose handling ended (or whose publish was settled) within the measured time. */
  readonly messages: number;
  /** The measured time. */
  readonly seconds: number;
  /** CPU time of the processes that publish or handle, in microseconds over the measured time. */
  readonly cpuMicros: number;
  /** CPU time of all server processes over the measured time; undefined where /proc is missing. */
  readonly serverCpuMicros: number | undefined;
  /** Breaches of O1, O2 or O3 seen in the whole run, not only in the measured time. */
  readonly orderFaults: number;
  /** Further figures by name, such as `p99Ms`; the median over the rounds is reported. */
  readonly details?: Readonly<Record<string, number>>;
}

/** Somebody who takes part in a comparison. */
export interface Contestant {
  readonly name: string;
  /** One round. Throws when an event was lost. */
  run(): Promise<Trial>;
}

/** Subjects that are measured beside references, in alternate rounds of one run. */
export interface Comparison {
  readonly name: string;
  readonly subjects: readonly Contestant[];
  readonly references: readonly Contestant[];
  /** Rounds that run first and do not count, until the code is compiled. Default 0. */
  readonly warmUpRounds?: number;
  /** The arithmetic limit of the workload, in messages per second, if there is one. Asked after the last round. */
  ideal?(): number;
}
