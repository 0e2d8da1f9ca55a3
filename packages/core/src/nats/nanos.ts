/** The only place where JetStream's nanoseconds are met. */
export const msToNanos = (ms: number): number => Math.round(ms * 1_000_000);
export const nanosToMs = (nanos: number): number => nanos / 1_000_000;
