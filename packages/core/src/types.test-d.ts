/** Compiled, never run: each `@ts-expect-error` is a fault that the types must refuse. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type {
  Codec,
  Handler,
  HandlerContext,
  LaneEvent,
  LanePublisher,
  Lanes,
  PublisherOptions,
  WorkerOptions,
} from "./index.js";
import { LanekeeperError } from "./index.js";
import { testContext, testEvent } from "./testing/index.js";

interface Order {
  readonly total: number;
}
interface Payment {
  readonly method: "card" | "bank";
}
type Shop = { placed: Order; paid: Payment; "order.noted": string };

declare const lanes: Lanes<Shop>;
declare const publisher: LanePublisher<Shop>;
declare function save(what: unknown): Promise<void>;
const group = "billing";

/** An event's data is that of its type, once the type is known. */
export const narrowing: Handler<Shop> = async (event) => {
  // @ts-expect-error the type is not known yet
  event.data.total;
  if (event.type === "placed") {
    const total: number = event.data.total;
    // @ts-expect-error an order has no method
    event.data.method;
    await save(total);
  } else if (event.type === "paid") {
    const method: "card" | "bank" = event.data.method;
    await save(method);
  } else {
    const note: string = event.data;
    const type: "order.noted" = event.type;
    await save([note, type]);
  }
  // @ts-expect-error "shipped" is no type of this map
  if (event.type === "shipped") await save(event);
};

/** A switch over every type leaves nothing over. */
export function exhaustive(event: LaneEvent<Shop>): number {
  switch (event.type) {
    case "placed":
      return event.data.total;
    case "paid":
      return event.data.method.length;
    case "order.noted":
      return event.data.length;
    default: {
      const nothing: never = event;
      return nothing;
    }
  }
}

/** What a handler may be: synchronous or asynchronous, with fewer parameters, with any outcome of its last expression awaited. */
export const handlers: Handler<Shop>[] = [
  () => {},
  async () => {},
  (event) => save(event),
  async (_event, { signal, fence }) => save([signal.aborted, fence.token]),
  () => Promise.resolve(),
];

/** O3: promises that nobody waits for would let the next event start before this one is done. */
declare const pending: Promise<void>;
// @ts-expect-error an array of promises is not awaited
export const arrayOfPromises: Handler<Shop> = async () => [pending, pending];
// @ts-expect-error nor when it is made by map()
export const mapped: Handler<Shop> = async (event) => [event].map((one) => save(one));
// @ts-expect-error nor synchronously
export const mappedNow: Handler<Shop> = (event) => [event].map((one) => save(one));
declare const typedAsArrays: (event: LaneEvent<Shop>, context: HandlerContext) => Promise<void>[];
// @ts-expect-error nor by a function declared so
export const declared: Handler<Shop> = typedAsArrays;
declare const typedAsPromiseOfArrays: () => Promise<Promise<void>[]>;
// @ts-expect-error nor by one that promises such an array
export const declaredAsync: Handler<Shop> = typedAsPromiseOfArrays;
// @ts-expect-error a count is no sign that effects are done
export const counts: Handler<Shop> = async () => 7;
export const all: Handler<Shop> = async (event) => {
  await Promise.all([event].map((one) => save(one)));
};

// @ts-expect-error and where it is passed on the spot
void lanes.work({ group }, async (event) => [save(event)]);
void lanes.work({ group }, (event) => save(event));

/** publish() takes a type of the map and its data, and nothing else. */
void publisher.publish({ key: "k", type: "placed", data: { total: 3 } });
void publisher.publish({
  key: "k",
  type: "order.noted",
  data: "x",
  id: "1",
  expectLastSeq: 0,
  headers: { a: ["b"] },
});
// @ts-expect-error data of another type
void publisher.publish({ key: "k", type: "placed", data: { method: "card" } });
// @ts-expect-error no type of the map
void publisher.publish({ key: "k", type: "shipped", data: {} });
// @ts-expect-error R04: a key is a text
void publisher.publish({ key: 42, type: "placed", data: { total: 3 } });
// @ts-expect-error R04: also when there is none
void publisher.publish({ key: undefined, type: "placed", data: { total: 3 } });
// @ts-expect-error no data
void publisher.publish({ key: "k", type: "placed" });
// @ts-expect-error a typing error in an option
void publisher.publish({ key: "k", type: "placed", data: { total: 3 }, expectedLastSeq: 0 });

/** Unknown options are refused, and so are values that are not built. */
// @ts-expect-error concurency
export const misspelt: WorkerOptions<Shop> = { group, concurency: 3 };
// @ts-expect-error "park"
export const parks: WorkerOptions<Shop> = { group, onExhausted: "park" };
export const owned: WorkerOptions<Shop> = { group, assignment: "owned", leaseMs: 5_000, maxAckPending: 16 };
// @ts-expect-error "leased"
export const leased: WorkerOptions<Shop> = { group, assignment: "leased" };
// @ts-expect-error a group is needed
export const nameless: WorkerOptions<Shop> = {};
// @ts-expect-error maxpending
export const bounded: PublisherOptions = { maxpending: 3 };
// @ts-expect-error both at once
export const both: WorkerOptions<Shop> = { group, deliverPolicy: { startSeq: 1, startTime: "x" } };

/** Schemas fit their types. */
declare const orderSchema: StandardSchemaV1<unknown, Order>;
declare const paymentSchema: StandardSchemaV1<unknown, Payment>;
export const perType: WorkerOptions<Shop> = { group, schema: { placed: orderSchema, paid: paymentSchema } };
// @ts-expect-error an order's schema for a payment
export const crossed: WorkerOptions<Shop> = { group, schema: { paid: orderSchema } };
// @ts-expect-error a schema for no type of the map
export const unknownType: WorkerOptions<Shop> = { group, schema: { shipped: orderSchema } };

/** Facts are readonly. */
export const readonly: Handler<Shop> = (event, context) => {
  // @ts-expect-error an event is frozen
  event.key = "other";
  // @ts-expect-error its headers too
  event.headers["a"] = [];
  // @ts-expect-error and the fence
  context.fence.token = 1;
};

/** Without a map every type is allowed, and data is unknown. */
declare const untyped: Lanes<Record<string, unknown>>;
void untyped.work({ group }, (event) => {
  const data: unknown = event.data;
  // @ts-expect-error unknown
  event.data.total;
  return save(data);
});

/** Errors narrow by `is`, codes are a closed list. */
export function reads(error: unknown): boolean {
  if (!LanekeeperError.is(error)) return false;
  // @ts-expect-error no such code
  if (error.code === "NO_SUCH_CODE") return true;
  return error.code === "FENCED";
}

/** An event made for a test fits every handler, typed or not, and can be read. */
const made = testEvent({ key: "k", type: "placed", data: { total: 1 }, attempt: 2 });
export const madeKey: string = made.key;
declare const untypedHandler: Handler<Record<string, unknown>>;
export const tested = () => [narrowing(made, testContext()), untypedHandler(made, testContext({ group }))];

// @ts-expect-error a codec has two directions
export const half: Codec = { encode: () => new Uint8Array() };
