import { applyEvent, type Customer, UNKNOWN_CUSTOMER } from "./customer.js";
import type { Database } from "./database.js";
import type { StoredCustomerEvent } from "./event.js";

export type Projected =
  /** The row has changed. `broken` names the rule of the business that the event broke, if it did. */
  | { readonly applied: true; readonly broken?: string }
  /** The row had already seen this event or a later one; nothing was changed. */
  | { readonly applied: false };

export interface ProjectionTotals {
  readonly customers: number;
  readonly active: number;
  readonly events: number;
  readonly brokenRules: number;
}

/**
 * One row per customer, kept up to date by events.
 *
 * Events are delivered at least once, so a worker that is killed between commit and ack leaves an event that comes
 * again. The row therefore remembers the sequence it has last seen, and skips what is not newer. One number per
 * row is enough *because* events of a key come in order: without order, an event that was overtaken would be
 * skipped as well, in silence.
 *
 * The number counts only within one incarnation (`context.fence.incarnation`): when the stream was made anew or
 * the group was rewound, sequences begin again and the row is built afresh.
 */
export class CustomerProjection {
  readonly #read;
  readonly #write;
  readonly #totals;

  /** Creates the table if there is none. */
  constructor(database: Database.Database) {
    database.exec(`CREATE TABLE IF NOT EXISTS customer (
      customer TEXT PRIMARY KEY,
      status TEXT NOT NULL,
      address TEXT NOT NULL,
      open_orders TEXT NOT NULL,
      shipped_orders INTEGER NOT NULL,
      events INTEGER NOT NULL,
      broken_rules INTEGER NOT NULL,
      incarnation TEXT NOT NULL,
      last_seq INTEGER NOT NULL
    ) WITHOUT ROWID`);
    this.#read = database.prepare("SELECT * FROM customer WHERE customer = ?");
    this.#write = database.prepare("INSERT OR REPLACE INTO customer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    this.#totals =
      database.prepare(`SELECT count(*) AS customers, count(*) FILTER (WHERE status = 'active') AS active,
      coalesce(sum(events), 0) AS events, coalesce(sum(broken_rules), 0) AS brokenRules FROM customer`);
  }

  /**
   * Takes one event into its customer's row. To be called inside a transaction, with whatever else the event
   * causes in the same database.
   */
  apply(event: StoredCustomerEvent, incarnation: string): Projected {
    const found = this.#read.get(event.key) as CustomerRow | undefined;
    const row = found?.incarnation === incarnation ? found : undefined;
    if (row !== undefined && event.seq <= row.last_seq) return { applied: false };
    const { customer, broken } = applyEvent(row === undefined ? UNKNOWN_CUSTOMER : customerOf(row), event);
    this.#write.run(
      event.key,
      customer.status,
      customer.address,
      JSON.stringify(customer.openOrders),
      customer.shippedOrders,
      (row?.events ?? 0) + 1,
      (row?.broken_rules ?? 0) + (broken === undefined ? 0 : 1),
      incarnation,
      event.seq,
    );
    return broken === undefined ? { applied: true } : { applied: true, broken };
  }

  totals(): ProjectionTotals {
    const { customers, active, events, brokenRules } = this.#totals.get() as ProjectionTotals;
    return { customers, active, events, brokenRules };
  }
}

interface CustomerRow {
  readonly status: Customer["status"];
  readonly address: string;
  readonly open_orders: string;
  readonly shipped_orders: number;
  readonly events: number;
  readonly broken_rules: number;
  readonly incarnation: string;
  readonly last_seq: number;
}

function customerOf(row: CustomerRow): Customer {
  return {
    status: row.status,
    address: row.address,
    openOrders: JSON.parse(row.open_orders),
    shippedOrders: row.shipped_orders,
  };
}
