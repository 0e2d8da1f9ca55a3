import { inTransaction, openDatabase } from "../customer-events/database.js";
import type { CustomerEvent, CustomerEvents, StoredCustomerEvent } from "../customer-events/event.js";
import { CustomerProjection, type Projected } from "../customer-events/projection.js";
import type { Delivery } from "./delivery.js";
import { HandlingLog, monotonicUs } from "./handling-log.js";
import { SequenceProjection } from "./sequence-projection.js";
import { simulatedIo } from "./simulated-io.js";
import type { WorkerTask } from "./worker-task.js";

/** The handler that all three modes share: a call to somewhere, then the projection's row. */
export type DeliveryHandler = (delivery: Delivery, incarnation: string) => Promise<void>;

/** @param onHandled called after each handling */
export function deliveryHandler(task: WorkerTask, onHandled: () => void): DeliveryHandler {
  const database = openDatabase(task.database);
  const log = new HandlingLog(database);
  const apply = task.rows === "customers" ? customerRows(database) : keyRows(database);
  return async (delivery, incarnation) => {
    const beganUs = monotonicUs();
    await simulatedIo(task.wait, task.seed, delivery.seq);
    inTransaction(database, () => log.add(delivery, beganUs, apply(delivery, incarnation)));
    onHandled();
  };
}

type Apply = (delivery: Delivery, incarnation: string) => Projected;
type Database = ReturnType<typeof openDatabase>;

function customerRows(database: Database): Apply {
  const projection = new CustomerProjection(database);
  return (delivery, incarnation) => projection.apply(customerEvent(delivery), incarnation);
}

function keyRows(database: Database): Apply {
  const projection = new SequenceProjection(database);
  return (delivery, incarnation) => projection.apply(delivery, incarnation);
}

const TYPES: Readonly<Record<keyof CustomerEvents, true>> = {
  created: true,
  "address-changed": true,
  "order-placed": true,
  "order-paid": true,
  "order-shipped": true,
  closed: true,
};

/** The demo has published the event itself, from the generator's types. */
function customerEvent(delivery: Delivery): StoredCustomerEvent {
  if (!Object.hasOwn(TYPES, delivery.type)) throw new Error(`"${delivery.type}" is no customer event`);
  return { ...(delivery as unknown as CustomerEvent), seq: delivery.seq };
}
