/** What can happen to a customer: event type → data. */
export interface CustomerEvents {
  created: { name: string; address: string };
  "address-changed": { address: string };
  "order-placed": { order: string; cents: number };
  "order-paid": { order: string; cents: number };
  "order-shipped": { order: string; carrier: string };
  closed: { reason: string };
}

export type CustomerEventType = keyof CustomerEvents;

/** An event of one customer: `key` is the customer's id. Narrows by `type`. */
export type CustomerEvent = {
  [T in CustomerEventType]: { readonly key: string; readonly type: T; readonly data: CustomerEvents[T] };
}[CustomerEventType];

/** An event as a worker gets it. A LaneEvent<CustomerEvents> is one. */
export type StoredCustomerEvent = CustomerEvent & {
  /** The stream sequence; rises within a key. */
  readonly seq: number;
};
