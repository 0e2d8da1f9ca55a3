/** What a live worker says of itself when asked. */
export interface WorkerReport {
  readonly id: string;
  readonly lanes: readonly number[];
  readonly blockedKeys: readonly string[];
}

/** Asks the live workers of a group over core NATS. Workers whose user may not subscribe to it are not heard. */
export interface RosterPort {
  answer(group: string, report: () => WorkerReport): () => void;
  ask(group: string): Promise<WorkerReport[]>;
}
