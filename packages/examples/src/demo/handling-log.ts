import type { Database } from "../customer-events/database.js";
import type { Projected } from "../customer-events/projection.js";
import type { Delivery } from "./delivery.js";

/** What the handlers of one mode did, all processes together. */
export interface HandlingTotals {
  /** Events that were handled at least once. */
  readonly handled: number;
  /** From the first handler's begin to the last one's end, in milliseconds. */
  readonly elapsedMs: number;
  /** Events that broke a rule, or came after a later event of their key had been applied. */
  readonly broken: number;
  /** Events whose handler began before every earlier event of the key was done. */
  readonly orderFaults: number;
  /** Handlings beyond the first of an event. */
  readonly duplicates: number;
  /** One broken rule, in words. */
  readonly example?: string;
}

/**
 * The demo's record of every handling: written in the transaction of the projection, so that the two cannot
 * differ, and evaluated by the database, so that memory does not grow with the input.
 */
export class HandlingLog {
  readonly #database: Database.Database;
  readonly #insert;

  /** Creates the table if there is none. */
  constructor(database: Database.Database) {
    this.#database = database;
    database.exec(`CREATE TABLE IF NOT EXISTS handling (
      seq INTEGER NOT NULL,
      key TEXT NOT NULL,
      type TEXT NOT NULL,
      position INTEGER NOT NULL,
      began_us INTEGER NOT NULL,
      ended_us INTEGER NOT NULL,
      applied INTEGER NOT NULL,
      broken TEXT
    )`);
    this.#insert = database.prepare("INSERT INTO handling VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  }

  /** @param beganUs when the handler began, by `monotonicUs`; it ends now */
  add(delivery: Delivery, beganUs: number, projected: Projected): void {
    this.#insert.run(
      delivery.seq,
      delivery.key,
      delivery.type,
      delivery.place.position,
      beganUs,
      monotonicUs(),
      projected.applied ? 1 : 0,
      projected.applied ? (projected.broken ?? null) : null,
    );
  }

  /** How many different events have been handled. */
  handled(): number {
    return (
      this.#database.prepare("SELECT count(DISTINCT seq) AS handled FROM handling").get() as {
        handled: number;
      }
    ).handled;
  }

  totals(): HandlingTotals {
    const counts = this.#database.prepare(COUNTS).get() as Counts;
    const { faults } = this.#database.prepare(ORDER_FAULTS).get() as { faults: number };
    const { broken } = this.#database.prepare(BROKEN).get() as { broken: number };
    const example = this.#database.prepare(EXAMPLE).get() as Example | undefined;
    return {
      handled: counts.handled,
      elapsedMs: (counts.last_us - counts.first_us) / 1000,
      broken,
      orderFaults: faults,
      duplicates: counts.handlings - counts.handled,
      ...(example === undefined ? {} : { example: `${example.key}: ${example.broken}` }),
    };
  }
}

/** Microseconds of the machine's monotonic clock, which all processes of a machine share. */
export function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

interface Counts {
  readonly handlings: number;
  readonly handled: number;
  readonly first_us: number;
  readonly last_us: number;
}

interface Example {
  readonly key: string;
  readonly broken: string;
}

const COUNTS = `SELECT count(*) AS handlings, count(DISTINCT seq) AS handled,
  coalesce(min(began_us), 0) AS first_us, coalesce(max(ended_us), 0) AS last_us FROM handling`;

/** First handlings only: what a repeated one does to its neighbours is counted as a duplicate. */
const ORDER_FAULTS = `
  WITH first AS (
    SELECT key, position, min(began_us) AS began_us, min(ended_us) AS ended_us FROM handling GROUP BY key, position
  ), compared AS (
    SELECT position, began_us, count(*) OVER earlier AS earlier, max(ended_us) OVER earlier AS earlier_ended_us
    FROM first WINDOW earlier AS (PARTITION BY key ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  )
  SELECT count(*) AS faults FROM compared WHERE earlier < position - 1 OR earlier_ended_us > began_us`;

/** An event that no handling could apply was overtaken by a later one: its change is lost. */
const BROKEN = `SELECT count(*) AS broken FROM (
  SELECT 1 FROM handling GROUP BY seq HAVING max(broken) IS NOT NULL OR max(applied) = 0)`;

const EXAMPLE = "SELECT key, broken FROM handling WHERE broken IS NOT NULL ORDER BY began_us LIMIT 1";
