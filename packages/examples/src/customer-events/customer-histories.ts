import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import type { CustomerEvent } from "./event.js";

export interface HistoryOptions {
  /** How many events in all. */
  readonly events: number;
  /** The same seed gives the same events. An integer. */
  readonly seed: number;
  /** How many customers are active side by side, from 1. Default 120. */
  readonly activeCustomers?: number;
}

/**
 * Events of many customers, as a shop would produce them: every customer's own events keep to the rules of
 * `applyEvent`, and those of different customers are mixed. Deterministic.
 *
 * Ends after `options.events`, in the middle of the histories that are then running.
 */
export function* customerHistories(options: HistoryOptions): Generator<CustomerEvent, void, undefined> {
  const generator = xoroshiro128plus(options.seed);
  const roll: Roll = (sides) => uniformInt(generator, 0, sides - 1);
  const active: Shopper[] = [];
  let created = 0;
  for (let count = 0; count < options.events; count++) {
    const slot = roll(options.activeCustomers ?? 120);
    const shopper = active[slot];
    if (shopper === undefined || shopper.gone) {
      const newcomer = new Shopper(`customer-${1001 + created++}`, roll);
      if (shopper === undefined) active.push(newcomer);
      else active[slot] = newcomer;
      yield newcomer.created();
    } else {
      yield shopper.next();
    }
  }
}

/** A number from 0 to sides − 1. */
type Roll = (sides: number) => number;

/** One customer, who knows what may happen next. */
class Shopper {
  gone = false;
  readonly #key: string;
  readonly #roll: Roll;
  #orders = 0;
  readonly #unpaid: { order: string; cents: number }[] = [];
  readonly #unshipped: string[] = [];

  constructor(key: string, roll: Roll) {
    this.#key = key;
    this.#roll = roll;
  }

  created(): CustomerEvent {
    const name = `${this.#pick(FIRST_NAMES)} ${this.#pick(LAST_NAMES)}`;
    return { key: this.#key, type: "created", data: { name, address: this.#address() } };
  }

  next(): CustomerEvent {
    const key = this.#key;
    // Most of what happens moves an order on; who has no open order may leave.
    const shipped = this.#unshipped.length > 0 && this.#roll(10) < 7 ? this.#unshipped.shift() : undefined;
    if (shipped !== undefined) {
      return { key, type: "order-shipped", data: { order: shipped, carrier: this.#pick(CARRIERS) } };
    }
    const paid = this.#unpaid.length > 0 && this.#roll(10) < 7 ? this.#unpaid.shift() : undefined;
    if (paid !== undefined) {
      this.#unshipped.push(paid.order);
      return { key, type: "order-paid", data: paid };
    }
    if (this.#roll(10) < 2) return { key, type: "address-changed", data: { address: this.#address() } };
    const idle = this.#unpaid.length === 0 && this.#unshipped.length === 0;
    if (idle && this.#orders > 0 && this.#roll(10) < 3) {
      this.gone = true;
      return { key, type: "closed", data: { reason: this.#pick(REASONS) } };
    }
    const placed = { order: `${key}-order-${++this.#orders}`, cents: 500 + this.#roll(40_000) };
    this.#unpaid.push(placed);
    return { key, type: "order-placed", data: placed };
  }

  #address(): string {
    return `${1 + this.#roll(200)} ${this.#pick(STREETS)}, ${this.#pick(TOWNS)}`;
  }

  #pick(values: readonly string[]): string {
    return values[this.#roll(values.length)] ?? "";
  }
}

const FIRST_NAMES = ["Ada", "Bo", "Chidi", "Dana", "Emre", "Fatima", "Grażyna", "Hiro", "Inês", "Jun"];
const LAST_NAMES = ["Almeida", "Berg", "Costa", "Dvořák", "Eze", "Ferrari", "García", "Haas", "Ito", "Jones"];
const STREETS = ["Harbour Street", "Mill Lane", "Station Road", "Church Walk", "Park Avenue"];
const TOWNS = ["Aarhus", "Bilbao", "Cork", "Delft", "Évora", "Gdańsk"];
const CARRIERS = ["by post", "by bike", "by van"];
const REASONS = ["moved away", "asked to be forgotten", "merged with another account"];
