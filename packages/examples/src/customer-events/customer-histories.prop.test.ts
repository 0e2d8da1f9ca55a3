import fc from "fast-check";
import { expect, test } from "vitest";
import { applyEvent, type Customer, UNKNOWN_CUSTOMER } from "./customer.js";
import { customerHistories } from "./customer-histories.js";
import type { CustomerEvent } from "./event.js";

const options = fc.record({
  events: fc.integer({ min: 1, max: 600 }),
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
  activeCustomers: fc.integer({ min: 1, max: 40 }),
});

test("histories break no rule when they are handled in order, whatever the seed", () => {
  fc.assert(
    fc.property(options, (given) => {
      expect(brokenRules([...customerHistories(given)])).toEqual([]);
    }),
  );
});

test("histories are as long as asked for, and the same for the same seed", () => {
  fc.assert(
    fc.property(options, (given) => {
      const events = [...customerHistories(given)];
      expect(events).toHaveLength(given.events);
      expect([...customerHistories(given)]).toEqual(events);
    }),
  );
});

test("O1: each pair of one customer's events, when swapped, breaks a rule or concerns an address or two orders", () => {
  const events = [...customerHistories({ events: 2_000, seed: 5 })];
  let seen = 0;
  for (const [index, event] of events.entries()) {
    const next = events.findIndex((other, place) => place > index && other.key === event.key);
    const successor = events[next];
    if (successor === undefined || indifferent(event, successor)) continue;
    const swapped = [...events];
    swapped[index] = successor;
    swapped[next] = event;
    expect(brokenRules(swapped).length, `${event.type}, ${successor.type}`).toBeGreaterThan(0);
    if (++seen === 200) return;
  }
  throw new Error("too few pairs to mean anything");
});

/** Two events of which a projection cannot tell that they were swapped: that is what `seq` is for. */
function indifferent(one: CustomerEvent, two: CustomerEvent): boolean {
  if (one.type === "created" || two.type === "closed") return false;
  if (one.type === "address-changed" || two.type === "address-changed") return true;
  return "order" in one.data && "order" in two.data && one.data.order !== two.data.order;
}

function brokenRules(events: readonly CustomerEvent[]): string[] {
  const customers = new Map<string, Customer>();
  const broken: string[] = [];
  for (const event of events) {
    const step = applyEvent(customers.get(event.key) ?? UNKNOWN_CUSTOMER, event);
    customers.set(event.key, step.customer);
    if (step.broken !== undefined) broken.push(step.broken);
  }
  return broken;
}
