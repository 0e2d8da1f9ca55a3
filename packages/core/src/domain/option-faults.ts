import { LanekeeperError } from "./lanekeeper-error.js";

/** Collects every fault of an options object, so that one error tells them all. */
export class OptionFaults {
  readonly #where: string;
  readonly #faults: string[] = [];

  /** `where` names the options in the message: "work() options". */
  constructor(where: string) {
    this.#where = where;
  }

  add(fault: string): void {
    this.#faults.push(fault);
  }

  /** The number, or `fallback` when absent; a fault when it is not a number (an integer, unless `fraction`) from min to max. */
  number(
    name: string,
    value: unknown,
    fallback: number,
    range: { min: number; max: number; fraction?: boolean },
  ): number {
    if (value === undefined) return fallback;
    const whole = range.fraction === true || Number.isInteger(value);
    if (typeof value !== "number" || !whole || !(value >= range.min && value <= range.max)) {
      this.add(
        `${name} must be ${range.fraction ? "a number" : "an integer"} from ${range.min} to ${range.max}, not ${show(value)}`,
      );
      return fallback;
    }
    return value;
  }

  oneOf<T extends string>(name: string, value: unknown, fallback: T, allowed: readonly T[]): T {
    if (value === undefined) return fallback;
    const found = allowed.find((one) => one === value);
    if (found === undefined)
      this.add(`${name} must be one of ${allowed.map(show).join(", ")}, not ${show(value)}`);
    return found ?? fallback;
  }

  callback(name: string, value: unknown): void {
    if (value !== undefined && typeof value !== "function")
      this.add(`${name} must be a function, not ${show(value)}`);
  }

  /** Names that are not options: most often a typing error that would otherwise be ignored in silence. */
  unknown(options: object, known: readonly string[]): void {
    for (const name of Object.keys(options)) {
      if (!known.includes(name)) this.add(`${name} is not an option; known are ${known.join(", ")}`);
    }
  }

  /** Throws INVALID_OPTIONS with every fault, or does nothing. */
  throwIfAny(): void {
    if (this.#faults.length > 0) {
      throw new LanekeeperError("INVALID_OPTIONS", `${this.#where}: ${this.#faults.join("; ")}`);
    }
  }
}

/** A value as a message shows it: short, and never throwing. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  return String(value);
}
