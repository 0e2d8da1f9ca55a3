/**
 * The fence token of a shared lane: the event's stream sequence, then how often the server has delivered it. It rises
 * from one event of a key to the next, and from one delivery of an event to the next, whoever gets it; retries in
 * one worker keep it. Exact up to sequence 8 × 10^12 and 1,023 deliveries, where it stops rising.
 */
export function sharedFenceToken(seq: number, deliveries: number): number {
  return seq * 1_024 + Math.min(deliveries, 1_023);
}
