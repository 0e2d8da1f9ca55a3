import type { Database } from "../customer-events/database.js";
import type { Projected } from "../customer-events/projection.js";
import type { Delivery } from "./delivery.js";
import type { Place } from "./input-event.js";

/**
 * One row per key of any input: how many events it has had, and how far its order field has come. Skips what is not
 * newer than what the row has seen, as `CustomerProjection` does and for its reasons.
 *
 * Its rule, kept only where events carry an order value: the value rises from event to event, and no event of the
 * input is left out between.
 */
export class SequenceProjection {
  readonly #read;
  readonly #write;

  /** Creates the table if there is none. */
  constructor(database: Database.Database) {
    database.exec(`CREATE TABLE IF NOT EXISTS key_row (
      key TEXT PRIMARY KEY,
      events INTEGER NOT NULL,
      broken_rules INTEGER NOT NULL,
      last_position INTEGER NOT NULL,
      last_order REAL,
      incarnation TEXT NOT NULL,
      last_seq INTEGER NOT NULL
    ) WITHOUT ROWID`);
    this.#read = database.prepare("SELECT * FROM key_row WHERE key = ?");
    this.#write = database.prepare("INSERT OR REPLACE INTO key_row VALUES (?, ?, ?, ?, ?, ?, ?)");
  }

  /** To be called inside a transaction. */
  apply(delivery: Delivery, incarnation: string): Projected {
    const found = this.#read.get(delivery.key) as KeyRow | undefined;
    const row = found?.incarnation === incarnation ? found : undefined;
    if (row !== undefined && delivery.seq <= row.last_seq) return { applied: false };
    const broken = brokenRule(row, delivery.place);
    this.#write.run(
      delivery.key,
      (row?.events ?? 0) + 1,
      (row?.broken_rules ?? 0) + (broken === undefined ? 0 : 1),
      delivery.place.position,
      delivery.place.order ?? null,
      incarnation,
      delivery.seq,
    );
    return broken === undefined ? { applied: true } : { applied: true, broken };
  }
}

interface KeyRow {
  readonly events: number;
  readonly broken_rules: number;
  readonly last_position: number;
  readonly last_order: number | null;
  readonly incarnation: string;
  readonly last_seq: number;
}

function brokenRule(row: KeyRow | undefined, { position, order }: Place): string | undefined {
  if (order === undefined) return undefined;
  const last = row?.last_position ?? 0;
  if (position !== last + 1) {
    return `its event ${position} came ${last === 0 ? "first" : `right after its event ${last}`}`;
  }
  const lastOrder = row?.last_order ?? Number.NEGATIVE_INFINITY;
  return order > lastOrder
    ? undefined
    : `the order field of its event ${position} does not rise, in the input`;
}
