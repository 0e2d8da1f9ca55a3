/**
 * The oldest nats-server on which long runs of a key are sent as atomic batches. They exist from 2.12, with message ids
 * from 2.12.1; what P1 needs of them was proved on 2.15 (ADR 0012).
 */
export const oldestWithBatches = "2.15.0";
