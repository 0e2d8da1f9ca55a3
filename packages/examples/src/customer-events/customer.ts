import type { CustomerEvent } from "./event.js";

/** What the projection knows of one customer. */
export interface Customer {
  readonly status: "unknown" | "active" | "closed";
  readonly address: string;
  /** Orders that have not been shipped: order id → how far it is. */
  readonly openOrders: Readonly<Record<string, "placed" | "paid">>;
  readonly shippedOrders: number;
}

export interface CustomerStep {
  readonly customer: Customer;
  /** The rule of the business that this event broke, in words. Absent when all is well. */
  readonly broken?: string;
}

export const UNKNOWN_CUSTOMER: Customer = {
  status: "unknown",
  address: "",
  openOrders: {},
  shippedOrders: 0,
};

/**
 * The customer after one more event. Pure.
 *
 * An event is a fact: one that breaks a rule changes the customer all the same, and says which rule. As long as
 * events come in the order in which they happened, no rule is ever broken.
 */
export function applyEvent(customer: Customer, event: CustomerEvent): CustomerStep {
  const broken = brokenRule(customer, event);
  const next = change(customer, event);
  return broken === undefined ? { customer: next } : { customer: next, broken };
}

function brokenRule(customer: Customer, event: CustomerEvent): string | undefined {
  if (customer.status === "closed") return `${event.type} after the customer was closed`;
  if (event.type === "created") {
    return customer.status === "unknown" ? undefined : "created twice";
  }
  if (customer.status === "unknown") return `${event.type} before the customer was created`;
  switch (event.type) {
    case "order-placed":
      return event.data.order in customer.openOrders ? "order placed twice" : undefined;
    case "order-paid":
      return customer.openOrders[event.data.order] === "placed"
        ? undefined
        : "order paid before it was placed";
    case "order-shipped":
      return customer.openOrders[event.data.order] === "paid"
        ? undefined
        : "order shipped before it was paid";
    case "closed":
      return Object.keys(customer.openOrders).length === 0 ? undefined : "customer closed with an open order";
    default:
      return undefined;
  }
}

function change(customer: Customer, event: CustomerEvent): Customer {
  switch (event.type) {
    case "created":
      return { ...customer, status: "active", address: event.data.address };
    case "address-changed":
      return { ...customer, address: event.data.address };
    case "order-placed":
      return withOrder(customer, event.data.order, "placed");
    case "order-paid":
      return withOrder(customer, event.data.order, "paid");
    case "order-shipped": {
      const { [event.data.order]: _shipped, ...openOrders } = customer.openOrders;
      return { ...customer, openOrders, shippedOrders: customer.shippedOrders + 1 };
    }
    case "closed":
      return { ...customer, status: "closed" };
  }
}

function withOrder(customer: Customer, order: string, state: "placed" | "paid"): Customer {
  return { ...customer, openOrders: { ...customer.openOrders, [order]: state } };
}
