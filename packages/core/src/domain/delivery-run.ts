/**
 * Whether the deliveries of a consumer form an unbroken run (O5): each one's delivery sequence is one more than the last.
 * A gap means that something was delivered elsewhere or lost, a step back that the consumer was rewound.
 */
export class DeliveryRun {
  #last: number;

  /** `last`: the delivery sequence that came before the first to be expected; 0 for a new consumer. */
  constructor(last = 0) {
    this.#last = last;
  }

  get last(): number {
    return this.#last;
  }

  /** False when this delivery breaks the run; nothing after it may be acted on. */
  accepts(deliverySeq: number): boolean {
    if (deliverySeq !== this.#last + 1) return false;
    this.#last = deliverySeq;
    return true;
  }
}
